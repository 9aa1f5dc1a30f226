"""Code that the dashboard and the server of a class of students share.

It imports no other module of `dashboard`.
"""
