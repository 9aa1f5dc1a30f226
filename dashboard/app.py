"""The dashboard as a Flask app: pages and an HTTP API that show runs from their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Flask

from dashboard import guard
from dashboard.api import api
from dashboard.base import application
from dashboard.base.application import TEMPLATES
from dashboard.batches import Batches
from dashboard.pages import pages
from dashboard.runs import Launcher
from dashboard.stream import Streams
from lab.errors import MachineLacks
from lab.run.recorder import RUNS

DEFAULTS = {
    "RUNS": RUNS,  # the folder that contains the run folders
    "KEY": "",  # needed to change anything; empty: everybody who reaches the server may
    "LINK_SECRET": "",  # signs the tokens of links, which are exchanged for the key
    "STREAMS": 112,  # the most live streams at the same time
    "STARTED_AT_ONCE": 4,  # the most runs that the dashboard lets run together
    "MAX_CONTENT_LENGTH": 256 * 1024,
}


def create_app(config: dict[str, Any] | None = None) -> Flask:
    """Return the Flask app of the dashboard. It shows the runs in the folder `config["RUNS"]`.

    `config` overrides `DEFAULTS` and the settings of `dashboard.base.application`. Raise
    `MachineLacks` if the folder `templates` is missing.
    """
    if not TEMPLATES.is_dir():
        raise MachineLacks(
            f"start the dashboard: {TEMPLATES} is missing. Try: git checkout templates"
        )
    runs = Path((config or {}).get("RUNS", RUNS))
    app = application.new("dashboard", runs, DEFAULTS, config)
    store, settings = app.extensions["store"], app.config
    app.extensions["streams"] = Streams(settings["STREAMS"])
    app.extensions["launcher"] = launcher = Launcher(
        store, settings["COMMAND"], settings["STARTED_AT_ONCE"], settings["EXTENSION_FOLDERS"]
    )
    app.extensions["batches"] = Batches(store, launcher)
    guard.protect(app)
    app.register_blueprint(pages)
    app.register_blueprint(api)
    return app
