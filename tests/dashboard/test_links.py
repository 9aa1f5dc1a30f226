"""A link works until its dashboard stops, and `link` prints another one."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from click.testing import CliRunner
from conftest import HERE, until

from lab import dashboard_links
from lab.cli import machine
from lab.cli.commands import cli
from lab.errors import LabError, RequestError

SERVER = """
import sys
from pathlib import Path
from dashboard.serve import serve
serve(None, browser=sys.argv[2] == "True", demo=False, runs=Path(sys.argv[1]))
"""


@contextmanager
def dashboard(runs: Path, browser: Path | None = None) -> Iterator[tuple[str, subprocess.Popen]]:
    """Yield the link that a dashboard prints, and its process, which is stopped at the end."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", SERVER, str(runs), str(browser is not None)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": str(HERE.parents[1]), "BROWSER": f"{browser} %s", "DISPLAY": ":0"},
    ) as process:
        try:
            assert process.stdout.readline() == "\n"
            yield process.stdout.readline().strip(), process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def opens(link: str) -> bool:
    """Whether a browser that was never there sees the page."""
    try:
        with build_opener(HTTPCookieProcessor()).open(link, timeout=20) as answer:
            return "token" not in answer.url
    except HTTPError as error:
        error.close()
        if error.code != 403:
            raise
        return False


def printed(runs: Path, monkeypatch) -> tuple[int, list[str]]:
    monkeypatch.setattr(machine, "RUNS", runs)
    done = CliRunner().invoke(cli, ["link"])
    return done.exit_code, done.output.split("\n")


@pytest.mark.whole
def test_a_link_works_until_the_dashboard_stops(runs, monkeypatch):
    with dashboard(runs) as (first, process):
        assert [opens(first) for _ in range(3)] == [True, True, True]
        code, (second, _) = printed(runs, monkeypatch)
        assert code == 0
        assert second != first
        assert opens(second)
        with dashboard(runs) as (other, _):
            code, (*both, _) = printed(runs, monkeypatch)
            assert [opens(each) for each in both] == [True, True]
            mine, its = first.partition("/?")[2], other.partition("/?")[0]
            assert not opens(f"{its}/?{mine}")
        process.kill()
        process.wait(20)
        code, text = printed(runs, monkeypatch)
        assert code == 2
        assert "no dashboard is running. Start one: ./run_lab.sh" in text[0]
    with dashboard(runs) as (third, _):
        address = third.partition("/?")[0]
        for old in (first, second):
            assert not opens(f"{address}/?{old.partition('/?')[2]}")
        assert opens(third)


@pytest.mark.whole
def test_the_arguments_of_a_browser_that_is_started_hold_no_token(runs, tmp_path):
    """Everybody on this machine can read them."""
    browser, started = tmp_path / "browser", tmp_path / "started"
    browser.write_text(f'#!/bin/sh\necho "$@" > {started}.new; mv {started}.new {started}\n')
    browser.chmod(0o700)
    with dashboard(runs, browser) as (link, _):
        until(started.exists)
        url = urlsplit(started.read_text().strip())
        page = Path(url.path)
        assert (url.scheme, url.query, page.parent) == ("file", "", runs.parent.resolve())
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert link in page.read_text()
        assert opens(link)
    assert not page.exists()


def test_only_the_user_can_read_the_secret_and_it_is_gone_at_the_end(tmp_path):
    folder = tmp_path / "data"
    with dashboard_links.opened(folder, "http://127.0.0.1:8080") as secret:
        (path,) = folder.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (link,) = dashboard_links.running(folder)
        address, _, token = link.partition("/?token=")
        assert address == "http://127.0.0.1:8080"
        assert dashboard_links.is_valid(token, secret)
        assert secret not in link
    assert not list(folder.iterdir())
    with pytest.raises(RequestError, match="no dashboard is running"):
        dashboard_links.running(folder)


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(LabError, match="Make the folder writable"),
        dashboard_links.opened(tmp_path / "file" / "data", "http://127.0.0.1:1"),
    ):
        pass
