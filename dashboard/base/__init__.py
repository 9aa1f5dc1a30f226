"""What the two web applications, the lab's pages and the pages of a class, have in common.

It imports no other module of the dashboard.
"""
