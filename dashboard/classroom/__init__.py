"""The server of a class: separate pages and APIs for students, the instructor and a projector
(docs/class_mode.md).

The pages and the API of the lab itself are not part of this app (`tests/test_layers.py`).
"""
