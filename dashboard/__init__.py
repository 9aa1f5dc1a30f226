"""Two separate web applications that show runs: the dashboard (`dashboard.app`) and the server of a
class of students (`dashboard.classroom`).

Neither imports the other, so the server of a class has no address of the dashboard. Runs that a
browser starts are child processes. The applications communicate with them only through signals and
files in the run folders.
"""
