"""The dashboard: pages and an HTTP API that show runs in the browser, read from the run folders.

A run that is started in the browser is a child process of the dashboard. Apart from signals, the
dashboard communicates with it only through files in its run folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flask import Flask

from dashboard import api, api_batches, api_finished, errors, guard, network_api, pages
from dashboard.batches import Batches
from dashboard.runs import Launcher
from dashboard.stream import Streams
from lab.errors import MachineLacks
from lab.results.store import Store
from lab.run.recorder import RUNS

MORE_ADDRESSES = (api_batches, api_finished)  # importing them adds their addresses to `api`
ROOT = Path(__file__).resolve().parents[1]
DEFAULTS = {
    "RUNS": RUNS,  # the folder that contains the run folders
    "KEY": "",  # needed to change anything; empty: everybody who reaches the server may
    "TICKET": "",  # opens the first page once and is exchanged for the key
    "NEXT_TICKET": str,  # returns the next ticket when one has been used
    "STREAMS": 112,  # the most live streams at the same time
    "STARTED_AT_ONCE": 4,  # the most runs that the dashboard lets run together
    "COMMAND": (),  # replaces `python -m lab`, for tests
    "EXTENSION_FOLDERS": (),  # given by --with; runs started here get the same
    "TRUSTED_HOSTS": ["127.0.0.1", "localhost", "[::1]"],
    "MAX_CONTENT_LENGTH": 256 * 1024,
}


def create_app(config: dict[str, Any] | None = None) -> Flask:
    """Return the Flask app that shows the run folders in `config["RUNS"]`.

    `config` overrides `DEFAULTS`. Raise `MachineLacks` if the folder `templates` is missing.
    """
    templates = ROOT / "templates"
    if not templates.is_dir():
        raise MachineLacks(
            f"start the dashboard: {templates} is missing. Try: git checkout templates"
        )
    app = Flask(
        __name__, template_folder=str(templates), static_folder=str(ROOT / "dashboard" / "static")
    )
    app.config.from_mapping(DEFAULTS | (config or {}))
    app.json.sort_keys = False  # type: ignore[attr-defined]  # related fields stay together
    runs = Path(app.config["RUNS"])
    app.extensions["store"] = store = Store(runs)
    app.extensions["streams"] = Streams(app.config["STREAMS"])
    app.extensions["launcher"] = Launcher(
        store,
        app.config["COMMAND"],
        app.config["STARTED_AT_ONCE"],
        app.config["EXTENSION_FOLDERS"],
    )
    app.extensions["batches"] = Batches(store, app.extensions["launcher"])
    guard.protect(app)
    errors.register(app)
    app.register_blueprint(pages.pages)
    app.register_blueprint(api.api)
    app.register_blueprint(network_api.network_api)
    return app
