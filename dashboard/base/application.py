"""A basic Flask app, from which the dashboard and the server of a class are both made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Flask

from dashboard.base import errors
from lab.results.store import Store

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"


def new(package: str, runs: Path, defaults: dict[str, Any], given: dict[str, Any] | None) -> Flask:
    """Return an app with settings, the index of runs and error responses, but without routes and
    access control.

    `package` is the Python package of the app. `runs` is the folder that contains the run folders.
    `given` has settings that override `defaults`.
    """
    static = ROOT / "dashboard" / "static"
    app = Flask(package, template_folder=str(TEMPLATES), static_folder=str(static))
    common = {
        "COMMAND": (),  # replaces `python -m lab`, for tests
        "EXTENSION_FOLDERS": (),  # given by --with; runs started here get the same
        "TRUSTED_HOSTS": ["127.0.0.1", "localhost", "[::1]"],
    }
    app.config.from_mapping(common | defaults | (given or {}))
    app.json.sort_keys = False  # type: ignore[attr-defined]  # related fields stay together
    app.extensions["store"] = Store(runs)
    errors.register(app)
    return app
