"""The server of a class: separate pages and APIs for students, the instructor and a projector
(docs/class_mode.md).

The ordinary API and its pages are not part of this app (`tests/test_layers.py`).
"""
