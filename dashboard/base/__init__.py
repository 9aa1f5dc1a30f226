"""What the lab's page and the page of a class have in common as web applications: the app itself,
guarding, serving, requests and errors. Nothing here imports any other module of the dashboard."""
