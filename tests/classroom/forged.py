"""Changes to the event log of a class, as somebody makes them who has its files."""

from __future__ import annotations

import json

from lab.classroom import chain


def texts(path):
    """The lines of an event log, without newlines."""
    return path.read_bytes().splitlines()


def put(path, lines):
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def edited(line, **changes):
    """The line with other values, and its own digest made anew."""
    found = json.loads(line) | changes
    before = found.pop("before")
    del found["sha256"]
    return chain.sealed(json.dumps(found).encode(), before)[0]


def change(path, wanted, **changes):
    """Edit the last event whose fields have the `wanted` values, and make all digests anew.

    Only a digest that was written down before shows this.
    """
    found = [json.loads(line) for line in texts(path)]
    last = [n for n, each in enumerate(found) if wanted.items() <= each.items()][-1]
    found[last] |= changes
    lines, head = [], chain.NOTHING
    for each in found:
        each.pop("before")
        each.pop("sha256")
        line, head = chain.sealed(json.dumps(each).encode(), head)
        lines.append(line)
    put(path, lines)


def without_digests(path):
    """Write the event log as an older version of the lab did."""
    found = [json.loads(line) for line in texts(path)]
    for each in found:
        each.pop("before")
        each.pop("sha256")
    put(path, [json.dumps(each).encode() for each in found])
