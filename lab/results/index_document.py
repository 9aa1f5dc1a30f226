"""Describe a run folder by one small JSON document, as the index of all runs holds it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from lab.results import flips
from lab.results.documents import WIRE_RATES_SCHEMA, tolerant_document
from lab.run import forms, process
from lab.run.reading import readable_events

SCHEMA = 3
STARTING_S = 600.0  # an older folder without a manifest belongs to a run that never began
UNFINISHED = ("starting", "running")
NOTE = "note.json"  # tags and note of a run, in its folder
SHOWN = (  # copied from the manifest
    "experiment",
    "scenario",
    "strategy",
    "params",
    "cc",
    "engine",
    "seed",
    "started",
    "duration_s",
    "rate_scale",
)
Doc = dict[str, Any]


def is_sound(doc: Any) -> bool:
    """Return whether a document of the index file has the form that lists of runs need.

    A document of another version of the index needs only an id: it is replaced before it is used.
    """
    if not isinstance(doc, dict) or not isinstance(doc.get("id"), str):
        return False
    return doc.get("schema") != SCHEMA or not forms.wrong(forms.INDEXED, doc)


def described(folder: Path, known: Doc | None) -> Doc | None:
    """Return the index document of a run folder. Return None if the folder holds no run.

    `known` is the document that the index holds for this folder, or None. It is returned unchanged
    if the run has ended and the files of the folder have not changed since.
    """
    stamp = [_changed(folder / name) for name in ("result.json", NOTE, "manifest.json")]
    if (
        known
        and known.get("schema") == SCHEMA
        and known["stamp"] == stamp
        and known["status"] not in UNFINISHED
    ):
        return known
    manifest = tolerant_document(folder / "manifest.json")
    if manifest is None and not _starting(folder):
        return None
    result = tolerant_document(folder / "result.json")
    status = "starting" if manifest is None else "running"
    if result is None and manifest is not None and not process.alive(manifest, folder):
        result = tolerant_document(folder / "result.json")  # the run may have ended in between
        stamp[0] = _changed(folder / "result.json")
        status = "cut"
    noted = tolerant_document(folder / NOTE) or {}
    doc = {"schema": SCHEMA, "id": folder.name, "stamp": stamp} | dict.fromkeys(SHOWN)
    doc |= {"scenario": "", "strategy": "", "engine": "", "started": ""}
    doc |= {
        key: (manifest or {}).get(key) for key in SHOWN if (manifest or {}).get(key) is not None
    }
    doc["wire_rates"] = manifest is not None and manifest.get("schema", 1) == WIRE_RATES_SCHEMA
    doc[flips.FLIPS] = _flips(folder, result)
    doc |= {"status": status, "tags": noted.get("tags", []), "note": noted.get("note", "")}
    doc |= _summary(result) if result else dict.fromkeys(SUMMARY)
    damage = [each["error"] for each in (manifest, noted) if each and "error" in each]
    return doc | {"error": "; ".join(damage)} if damage and not doc["error"] else doc


SUMMARY = (  # taken from the result
    "measured_s",
    "throughput_mbps",
    "tiers",
    "aps",
    "jain",
    "overloaded",
    "verified",
    "error",
)


def _summary(result: Doc) -> Doc:
    """Return the numbers of a result.json that lists of runs show. `verified` says whether the run
    really used Multipath TCP; it is None if the run has no multipath users."""
    multipath = any(user.get("kind") == "multipath" for user in result.get("users", {}).values())
    verified = (result.get("mptcp") or {}).get("verified")
    return {
        "status": result.get("status", "failed"),
        "measured_s": result.get("duration_s"),
        "throughput_mbps": result.get("throughput_mbps"),
        "tiers": result.get("tiers"),
        "aps": {ap: each.get("throughput_mbps") for ap, each in result.get("aps", {}).items()},
        "jain": result.get("fairness", {}).get("jain"),
        "overloaded": result.get("overloaded"),
        "verified": verified if multipath else None,
        "error": result.get("error"),
    }


def _flips(folder: Path, result: Doc | None) -> list[Doc]:
    """Return the flips of a run, from its result or, without one, from its events."""
    if result is not None:
        return list(result.get(flips.FLIPS, []))
    return flips.made_by_hand(readable_events(folder))


def _starting(folder: Path) -> bool:
    try:
        return time.time() - folder.stat().st_mtime < STARTING_S
    except OSError:
        return False


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
