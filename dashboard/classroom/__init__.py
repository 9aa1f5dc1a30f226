"""The web server of a class, with pages and APIs for students, the instructor and a projector
(docs/class_mode.md).

The pages and the API of the dashboard are not part of it (`tests/test_layers.py`).
"""
