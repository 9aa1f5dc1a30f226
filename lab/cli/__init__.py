"""What the command line prints and plans; `lab.__main__` only names the verbs."""
