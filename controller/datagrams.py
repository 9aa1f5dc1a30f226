"""Authenticate the datagrams between the controller and the lab's agents (docs/formats.md).

A datagram is the secret key of the run, a newline, and a JSON object. The key is checked before
anything else is parsed. This module imports no validation library, so that agents start quickly.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from typing import Any

from controller import bounded_json
from controller.errors import MessageRefused

MOST_BYTES = 65_507  # the largest UDP payload
MOST_KEY_BYTES = 256


def seal(values: Mapping[str, Any], key: str) -> bytes:
    """Return a datagram: the secret key of the run, a newline, and `values` as JSON."""
    return key.encode() + b"\n" + json.dumps(values, separators=(",", ":")).encode()


def content(datagram: bytes, key: str, doing: str) -> bytes:
    """Return the JSON text of a datagram that begins with the secret `key` of the run.

    Raise `MessageRefused` if the datagram does not begin with `key`, if it is too long, or if `key`
    is empty. The error message begins with `doing`.
    """
    sent, newline, text = datagram[:MOST_BYTES].partition(b"\n")
    right = hmac.compare_digest(sent[:MOST_KEY_BYTES], key.encode())
    if not (right and newline and key and len(datagram) <= MOST_BYTES):
        raise MessageRefused(f"{doing}: key: not this run's. docs/formats.md shows the form")
    return text


def unseal(datagram: bytes, key: str, doing: str) -> dict[str, Any]:
    """Return the JSON object in a datagram that begins with the secret `key` of the run.

    Raise `MessageRefused` as `content` does. Also raise it if the text after the key is no JSON
    object within the limits of `controller.bounded_json`. The error message begins with `doing`.
    """
    try:
        return bounded_json.parse_object(content(datagram, key, doing))
    except bounded_json.JsonRefused as error:
        raise MessageRefused(
            f"{doing}: the whole message: {error}. docs/formats.md shows what is expected"
        ) from error
