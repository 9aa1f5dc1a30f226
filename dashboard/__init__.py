"""Web applications over run folders: the lab's page (`dashboard.app`) and the page of a class
(`dashboard.classroom`).

They are two applications, so that no address of the lab exists in a class, and neither imports the
other. A run that is started in the browser is a child process. Apart from signals, the server
communicates with it only through files in its run folder.
"""
