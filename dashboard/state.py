"""Where a run is: from its folder alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dashboard import flips
from lab.results.documents import tolerant_document
from lab.run import process

TAIL_BYTES = 65_536
Doc = dict[str, Any]


def of(folder: Path) -> Doc:
    """{"status", "over", "t", "paused", "speed", "verdict", "overloaded", "error"}; `over`: nothing more will come."""
    result, manifest = (
        tolerant_document(folder / "result.json"),
        tolerant_document(folder / "manifest.json"),
    )
    last = last_frame(folder)
    status = _status(folder, manifest, result)
    flags = _flags(folder)
    over = status not in ("starting", "running")
    reasons = [
        str(reason) for reason in ((result or {}).get("overload") or {}).get("reasons", [])
    ] or flags["overloaded"]
    return {
        "status": status,
        "over": over,
        "t": (result or {}).get("duration_s") or (last or {}).get("t", 0),
        "paused": flags["paused"] and not over,
        "speed": flags["speed"] if flags["speed"] is not None else _speed(manifest),
        "verdict": verdict(result, last, _multipath(folder), over),
        "overloaded": "; ".join(reasons) if (result or {}).get("overloaded") or reasons else "",
        "error": (result or {}).get("error") or "",
    }


def verdict(result: Doc | None, last: Doc | None, multipath: list[str], over: bool) -> Doc:
    """Was it really Multipath TCP? {"is": yes, no, pending or none; "text"}."""
    if not multipath:
        return {
            "is": "none",
            "text": "No user of this scenario is multipath: plain TCP is what is meant to happen.",
        }
    if result is not None:
        told = result.get("mptcp") or {}
        seen = f"{_count(told.get('joins', 0), 'subflow')} joined, {_count(told.get('fallbacks', 0), 'connection')} fell back to plain TCP"
        if told.get("verified"):
            return {"is": "yes", "text": f"It was really Multipath TCP: {seen}."}
        return {
            "is": "no",
            "text": f"It was NOT verified to be Multipath TCP: {seen}. Do not read these numbers as multipath.",
        }
    if over:
        return {
            "is": "no",
            "text": "The run ended without a result, so nobody can say whether it was Multipath TCP.",
        }
    found = _subflows(last)
    several = [connection for connection, count in found.items() if count > 1]
    if several:
        return {
            "is": "pending",
            "text": f"{_count(len(several), 'connection')} with more than one subflow so far; verified at the end.",
        }
    if last and last.get("t", 0) > 5 and found:
        return {
            "is": "no",
            "text": "So far no connection uses more than one subflow: this is not Multipath TCP.",
        }
    return {"is": "pending", "text": "Waiting for the first subflows."}


def last_frame(folder: Path) -> Doc | None:
    """The newest whole line of samples.jsonl."""
    try:
        with (folder / "samples.jsonl").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            lines = file.read().split(b"\n")[:-1]
        frame: Doc | None = json.loads(lines[-1]) if lines else None
    except (OSError, ValueError):
        return None
    return frame


def _status(folder: Path, manifest: Doc | None, result: Doc | None) -> str:
    if result is not None:
        return str(result.get("status", "failed"))
    if manifest is None:
        return "starting"
    if process.alive(manifest, folder):
        return "running"
    result = tolerant_document(folder / "result.json")  # it may have ended just now
    return str(result.get("status", "failed")) if result else "cut"


def _flags(folder: Path) -> Doc:
    flags: Doc = {"paused": False, "speed": None, "overloaded": []}
    for event in _telling(folder / "events.jsonl"):
        if event.get("kind") == "control" and event.get("ok"):
            flags["paused"] = {"pause": True, "resume": False}.get(
                event["control"], flags["paused"]
            )
            flags["speed"] = (
                event.get("value", flags["speed"])
                if event["control"] == "speed"
                else flags["speed"]
            )
        if event.get("kind") == "warning" and event.get("overloaded"):
            flags["overloaded"].append(str(event.get("text", "overloaded")))
    return flags


def _speed(manifest: Doc | None) -> float | str | None:
    """The speed a run began with; None if it runs in real time or nobody knows."""
    speed = (manifest or {}).get("speed")
    return "max" if speed == 0 else speed


def _telling(path: Path) -> Iterator[Doc]:
    """The few events that `_flags` is about, without reading the others as JSON."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines[:-1]:
        if b'"control"' in line or b'"overloaded"' in line:
            yield json.loads(line)


def _multipath(folder: Path) -> list[str]:
    """The multipath users, from the resolved scenario."""
    try:
        return list(flips.topology(folder).multipath)
    except LookupError:
        return []


def _subflows(frame: Doc | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in (frame or {}).get("sf", {}):
        connection = name.rpartition("/")[0]
        found[connection] = found.get(connection, 0) + 1
    return found


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
