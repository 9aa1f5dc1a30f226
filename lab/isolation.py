"""Keep Python from importing modules in the caller's current folder or in PYTHONPATH.

With `python -m`, Python searches the current folder first. A file `click.py` there would be
imported instead of the package, and would run as root under sudo. Each program of the lab therefore
calls `isolate()` before it imports anything else, and starts other Python programs with `python()`.
"""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def isolate() -> None:
    """Put the lab's folder first in `sys.path`; remove the current folder and those in PYTHONPATH.

    In child processes, PYTHONPATH is the lab's folder alone.
    """
    named = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    callers = set(map(os.path.abspath, named))  # Python makes the entries of sys.path absolute
    if not sys.flags.safe_path:
        callers.add(sys.path[0])  # of `python -m`
    sys.path[:] = [ROOT, *(each for each in sys.path if each not in {ROOT, "", *callers})]
    os.environ["PYTHONPATH"] = ROOT


def python(*words: str) -> list[str]:
    """Return the command line of a Python program that does not import from the current folder."""
    return [sys.executable, "-P", *words]
