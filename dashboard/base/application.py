"""A Flask app with what both applications need: folders, settings, runs and error responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Flask

from dashboard.base import errors
from lab.results.store import Store

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "templates"


def new(package: str, runs: Path, defaults: dict[str, Any], given: dict[str, Any] | None) -> Flask:
    """Return an app without any routes and without access control.

    `package` is the Python package of the app, `runs` the folder that contains the run folders. The
    settings in `given` override `defaults`.
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
