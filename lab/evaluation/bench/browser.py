"""Open the system's browser without a window, for measurements and for the tests of the pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.errors import MachineLacks

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-default-apps",
    "--no-first-run",
)


def program() -> str:
    """Return the path of chromium. Raise `MachineLacks` if there is none."""
    found = os.environ.get("CHROMIUM_PATH") or shutil.which("chromium")
    found = found or shutil.which("chromium-browser")
    if not found:
        raise MachineLacks(
            "open a browser: chromium is missing. "
            "Try: sudo apt install chromium, or set CHROMIUM_PATH"
        )
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """Yield a new browser. Raise `MachineLacks` if playwright or chromium is missing."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MachineLacks(
            "open a browser: playwright is missing. "
            "Try: python -m pip install -r requirements-dev.txt"
        ) from error
    path = program()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield opened
        finally:
            opened.close()
