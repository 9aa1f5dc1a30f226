"""A headless Chromium, for measurements and for the tests of the pages."""

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
    """Return the path of Chromium: the value of `CHROMIUM_PATH`, or the installed program.

    Raises `MachineLacks` if there is none.
    """
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
    """Open a browser. Raises `MachineLacks` if playwright or Chromium is missing."""
    with browsers(1) as (opened,):
        yield opened


@contextmanager
def browsers(count: int) -> Iterator[list[Browser]]:
    """Open `count` browsers, each in its own process.

    Raises `MachineLacks` if playwright or Chromium is missing.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise MachineLacks(
            "open a browser: playwright is missing. "
            "Try: python -m pip install -r requirements-dev.txt"
        ) from error
    path, opened = program(), []
    with sync_playwright() as playwright:
        try:
            for _ in range(count):
                opened.append(
                    playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
                )
            yield opened
        finally:
            for each in opened:
                each.close()
