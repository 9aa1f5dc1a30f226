"""Check that documents and lines of a run folder have the form that the lab writes.

A run folder can be damaged, edited by hand, or come from another machine. A document of another
form is treated like a file that cannot be read.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Number = float | None
Table = dict[str, Any]
ProcessId = Annotated[int, Field(ge=1, lt=2**31)]
FIGURES = (bool, int, float, str, type(None))
INDEXED = "a document of index.json"
GROUPS = ("ap", "link", "user", "sf")


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", protected_namespaces=())


class _Manifest(_Form):
    version: int = Field(1, alias="schema")
    experiment: str | None = None
    scenario: str = ""
    strategy: str = ""
    params: Table | None = None
    cc: str | None = None
    engine: str = ""
    seed: int | None = None
    started: str = ""
    duration_s: Number = None
    rate_scale: Number = None
    speed: float | str | None = None
    pid: ProcessId | None = None
    pid_started: int | None = None
    boot_id: str | None = None
    extensions: list[Table] | None = None
    versions: Table = {}


class _Ap(_Form):
    throughput_mbps: Number = None


class _User(_Form):
    kind: str = ""


class _Fairness(_Form):
    jain: Number = None


class _Mptcp(_Form):
    verified: bool | None = None
    joins: int | None = None
    fallbacks: int | None = None


class _Overload(_Form):
    reasons: list[str] = []


class _Flip(_Form):
    t: float
    target: str
    value: Any


class _Result(_Form):
    version: int = Field(1, alias="schema")
    status: str = "failed"
    error: str | None = None
    duration_s: Number = None
    throughput_mbps: Number = None
    tiers: dict[str, Number] | None = None
    aps: dict[str, _Ap] = {}
    users: dict[str, _User] = {}
    connections: list[Table] = []
    flips: list[_Flip] = []
    fairness: _Fairness = _Fairness()
    overloaded: bool | None = None
    overload: _Overload | None = None
    mptcp: _Mptcp | None = None


class _Note(_Form):
    tags: list[str] = []
    note: str = ""


class _Indexed(_Manifest, _Note):
    """Describe a run in the index. Every field is there, because lists show each of them."""

    id: str
    stamp: list[int]
    status: str
    wire_rates: bool
    flips: list[_Flip]
    measured_s: Number
    throughput_mbps: Number
    tiers: dict[str, Number] | None
    aps: dict[str, Number] | None
    jain: Number
    overloaded: bool | None
    verified: bool | None
    error: str | None
    tags: list[str]
    note: str
    scenario: str
    strategy: str
    params: Table | None
    cc: str | None
    engine: str
    seed: int | None
    started: str
    duration_s: Number
    rate_scale: Number
    experiment: str | None


FORMS: dict[str, type[_Form]] = {
    "manifest.json": _Manifest,
    "result.json": _Result,
    "note.json": _Note,
    INDEXED: _Indexed,
}


def wrong(name: str, document: Table) -> str:
    """Return what is wrong with the content of the file `name`, such as "users: Input should be a
    valid dictionary". Return an empty text if nothing is wrong, or if `name` has no form."""
    try:
        if name in FORMS:
            FORMS[name].model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
    return ""


def is_frame(line: Table) -> bool:
    """Return whether an object can be a line of samples.jsonl: a time, and figures by name."""
    return _has_time(line) and all(
        isinstance(group, dict)
        and all(
            isinstance(sample, dict) and all(type(each) in FIGURES for each in sample.values())
            for sample in group.values()
        )
        for group in (line[name] for name in GROUPS if name in line)
    )


def is_event(line: Table) -> bool:
    """Return whether an object can be a line of events.jsonl.

    It needs a time `t`, which is a number. `kind` must be text if it is there.
    """
    return _has_time(line) and isinstance(line.get("kind", ""), str)


def _has_time(line: Table) -> bool:
    return type(line.get("t")) in (int, float)
