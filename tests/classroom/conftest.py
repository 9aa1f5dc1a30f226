"""A class with one small worksheet, whose runs are copies of a finished one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SUBJECT = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parent / "dashboard"))  # has axe.py

from class_clients import join  # noqa: E402
from class_fakes import SHEET, Clock, command, template  # noqa: E402

from dashboard.classroom.app import create_app  # noqa: E402
from lab.classroom import folder  # noqa: E402
from lab.classroom.door import Newcomer  # noqa: E402
from lab.classroom.room import Room  # noqa: E402
from lab.run import manifest  # noqa: E402


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sheet(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SHEET)
    return path


@pytest.fixture(scope="session")
def made_folder(tmp_path_factory):
    """The folder of a class, made once for all tests, because that checks the worksheet."""
    place = tmp_path_factory.mktemp("made")
    (place / "small.yaml").write_text(SHEET)
    return folder.make("test", [str(place / "small.yaml")], classes=place / "classes")


@pytest.fixture
def class_folder(tmp_path, made_folder):
    path = tmp_path / "classes" / "test"
    shutil.copytree(made_folder.path, path)
    return replace(made_folder, path=path, worksheets=dict(made_folder.worksheets))


@pytest.fixture
def one_version(monkeypatch):
    """All processes of the test see one version of the lab, even if a file is edited meanwhile."""
    monkeypatch.setenv(manifest.COMMIT, "0123456789ab")
    manifest.commit.cache_clear()
    yield
    manifest.commit.cache_clear()


@pytest.fixture
def room(class_folder, clock):
    found = Room(class_folder, clock)
    yield found
    found.close()


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    return template(tmp_path_factory.mktemp("finished") / "run")


@pytest.fixture
def app(room, finished_run, monkeypatch):
    monkeypatch.setenv("FAKE_RUN", str(finished_run))
    app = create_app(room, {"TESTING": True, "COMMAND": command()})
    yield app
    app.extensions["conductor"].stop()


@pytest.fixture
def seat(room):
    """A seat that has opened the worksheet."""
    seat, _ = room.join("here", room.folder.settings.code, [Newcomer("Ada")])
    room.open(seat, "small")
    return seat


@pytest.fixture
def ada(app):
    client = join(app, "Ada")
    assert client.post("/api/class/worksheets/small/open", json={}).status_code == 200
    return client


@pytest.fixture
def bo(app):
    return join(app, "Bo")


@pytest.fixture
def instructor(app):
    client = app.test_client()
    key = app.extensions["room"].folder.settings.instructor_key
    answer = client.get(f"/instructor?key={key}")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/instructor")
    return client


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    place = tmp_path_factory.mktemp("tls")
    made, key = place / "certificate.pem", place / "key.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *SUBJECT]
    subprocess.run([*argv, "-out", str(made), "-keyout", str(key)], check=True, capture_output=True)
    return made, key
