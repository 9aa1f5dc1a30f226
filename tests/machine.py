"""What some tests need of the machine."""

import os

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: run the tests with sudo to include it")
