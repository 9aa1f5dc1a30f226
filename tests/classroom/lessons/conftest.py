"""A class that goes on in real time, with a worksheet that each test may change."""

from __future__ import annotations

import pytest
from class_browser import Faults
from class_fakes import SHEET

from lab.classroom import folder
from lab.classroom.clock import ClassClock


@pytest.fixture
def sheet(tmp_path):
    """The small worksheet with a check that passes, and runs of two seconds."""
    path = tmp_path / "small.yaml"
    path.write_text(SHEET.replace("> 9000.125", "> 0").replace("duration_s: 10", "duration_s: 2"))
    return path


@pytest.fixture
def class_folder(tmp_path, sheet):
    return folder.make("test", [str(sheet)], classes=tmp_path / "classes")


@pytest.fixture
def clock():
    return ClassClock()


@pytest.fixture
def faults():
    found = Faults()
    yield found
    assert found == []
