"""Say what a file is that was given as a scenario and is none, and what to type instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab import plain_file, user_file
from lab.errors import RequestError

MOST_BYTES = 1 << 20  # that are looked at
SCENARIO = "write a scenario file with 'name', 'title', 'traffic' and"
HOSTS = "users: [HOST], servers: [HOST]"
OF_CODE = {
    "strategy": "a strategy: give it by --strategy {path}",
    "cc": "a congestion control: give it by --cc {path}",
    "topology": f"a topology: {SCENARIO} 'topology: {{{{file: {{name}}}}}}'",
    "metric": "a metric: give it by --with {path}",
}


def explained(path: Path, content: Mapping[str, Any] | None) -> str:
    """Return what a file is and what to type, or "" if the file could be a scenario.

    `content` is its content as YAML (JSON is YAML, too), or None if it is no YAML.
    """
    if content is not None:
        return "" if "topology" in content else _of_keys(path, {*map(str, content)})
    if path.suffix == user_file.C:
        return f"it is {OF_CODE['cc'].format(path=path)}"
    if path.suffix == user_file.PYTHON:
        return f"it is Python: {_of_python(path)}"
    try:
        start = plain_file.read(path, most_bytes=MOST_BYTES, follow=True).lstrip()
    except OSError:
        return ""
    if b"<graphml" in start and start.startswith((b"<", b"\xef\xbb\xbf<")):
        return f"it is GraphML: {SCENARIO} 'topology: {{graphml: {path.name}, {HOSTS}}}'"
    return "it is XML, and a scenario is YAML" if start.startswith(b"<?xml") else ""


def _of_keys(path: Path, keys: set[str]) -> str:
    if {"hosts", "switches", "links"} <= keys:
        return (
            f"it is a drawing of MiniEdit: {SCENARIO} "
            f"'topology: {{miniedit: {path.name}, {HOSTS}}}'"
        )
    if "run_id" in keys:
        return f"it is a file of a run. Give the run's folder, {path.parent}"
    if {"switches", "hosts", "trunks"} <= keys:
        return "it is a topology file for the controller (docs/own_networks.md)"
    if {"goals", "steps"} <= keys:
        return f"it is a worksheet. Type ./run_lab.sh worksheet check {path}"
    if path.suffix.lower() == ".json":
        known = ", ".join(sorted(keys)[:6])
        return f"it is JSON with the keys {known}, and a scenario has 'topology' and 'traffic'"
    return ""


def _of_python(path: Path) -> str:
    try:
        text = user_file.content(path)
    except (RequestError, OSError):
        return "a scenario is YAML"
    try:
        kind = user_file.defined_in(path)
    except RequestError:  # such as Python 2
        kind = None
    if not kind and re.search(rb"^\s*(from|import) (mininet|mn_wifi)\b", text, re.MULTILINE):
        return (
            f"a Mininet script. For its topology, {SCENARIO} "
            f"'topology: {{mininet: {path.name}, topo: NAME, {HOSTS}}}'"
        )
    return OF_CODE[kind].format(path=path, name=path.name) if kind else "a scenario is YAML"
