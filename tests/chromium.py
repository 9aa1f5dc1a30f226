"""Browsers for tests of pages."""

from __future__ import annotations

import fcntl
from contextlib import ExitStack, contextmanager

import pytest
from built_network import LOCK

from bench.browser import browsers
from lab.errors import MachineLacks


@contextmanager
def chromium():
    with chromiums(1) as (opened,):
        yield opened


@contextmanager
def chromiums(count):
    """Skip the test with a visible line where there is no browser.

    The lock keeps other tests from building networks: a browser drops its requests when an
    interface appears.
    """
    with ExitStack() as stack:
        fcntl.flock(stack.enter_context(LOCK.open("a")), fcntl.LOCK_SH)
        try:
            opened = stack.enter_context(browsers(count))
        except MachineLacks as missing:
            pytest.skip(f"THE BROWSER TEST DID NOT RUN: {missing}")
        yield opened
