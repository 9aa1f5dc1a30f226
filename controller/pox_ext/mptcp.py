"""Read Multipath TCP options from raw bytes: version 0 (RFC 6824) and version 1 (RFC 8684).

The versions differ in MP_CAPABLE: a v1 SYN carries no key, and the third ACK may carry data. In
both, the SYN/ACK carries the server's key. Every MP_JOIN to the server names the token of this key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

KIND = 30
SUBTYPES = (
    "MP_CAPABLE",
    "MP_JOIN",
    "DSS",
    "ADD_ADDR",
    "REMOVE_ADDR",
    "MP_PRIO",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_TCPRST",
)
_CAPABLE_LENGTHS = {0: (12, 20), 1: (4, 12, 20, 22, 24)}
_JOIN_LENGTHS = {12: "syn", 16: "syn_ack", 24: "ack"}


@dataclass(frozen=True)
class Capable:
    """Hold MP_CAPABLE (RFC 8684 and RFC 6824, section 3.1); a field is None if the option is too
    short for it.
    """

    version: int
    flags: int
    sender_key: bytes | None = None
    receiver_key: bytes | None = None
    data_length: int | None = None

    def token(self) -> str | None:
        """Return the sender's token in hexadecimal (RFC 8684, section 3.2), None without a key."""
        return None if self.sender_key is None else token(self.sender_key, self.version)


@dataclass(frozen=True)
class Join:
    """Hold MP_JOIN (section 3.2 of both).

    Only the SYN has the token; the third ACK has neither address id nor backup flag.
    """

    step: str
    backup: bool
    address_id: int
    token: str | None = None


@dataclass(frozen=True)
class Prio:
    """Hold MP_PRIO (section 3.3.8 of both): the priority of this subflow.

    In v0 an address may follow; then it is the priority of the subflows of this address.
    """

    backup: bool
    address_id: int | None = None


@dataclass(frozen=True)
class Other:
    """Hold the name of any other Multipath TCP option."""

    name: str


Option = Capable | Join | Prio | Other


def token(key: bytes, version: int) -> str:
    """Return the first 32 bits of the hash of a key in hexadecimal: SHA-256 in v1, SHA-1 in v0."""
    digest = hashlib.sha256(key) if version else hashlib.sha1(key, usedforsecurity=False)
    return digest.hexdigest()[:8]


def parse(options: bytes) -> Option | None:
    """Return the most important Multipath TCP option among TCP options, or None; never raise.

    A segment may carry several (DSS with MP_PRIO): MP_CAPABLE, MP_JOIN and MP_PRIO go before the
    others.
    """
    found = [option for option in map(_option, _mptcp_options(options)) if option is not None]
    named = [option for option in found if not isinstance(option, Other)]
    return next(iter(named or found), None)


def _mptcp_options(options: bytes) -> Iterator[bytes]:
    """Yield the Multipath TCP options (RFC 9293, section 3.1); stop where the list is broken."""
    at = 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            return
        if options[at] == KIND and length > 2:
            yield options[at : at + length]
        at += length


def _option(raw: bytes) -> Option | None:
    subtype = raw[2] >> 4
    if subtype == 0:
        return _capable(raw)
    if subtype == 1:
        return _join(raw)
    if subtype == 5:
        return _prio(raw)
    return Other(SUBTYPES[subtype]) if subtype < len(SUBTYPES) else None


def _capable(raw: bytes) -> Capable | None:
    version = raw[2] & 15
    if len(raw) < 4 or len(raw) not in _CAPABLE_LENGTHS.get(version, ()):
        return None
    return Capable(
        version,
        raw[3],
        sender_key=raw[4:12] or None,
        receiver_key=raw[12:20] or None,
        data_length=int.from_bytes(raw[20:22], "big") if len(raw) >= 22 else None,
    )


def _join(raw: bytes) -> Join | None:
    step = _JOIN_LENGTHS.get(len(raw))
    if step is None:
        return None
    named = raw[4:8].hex() if step == "syn" else None
    return Join(step, step != "ack" and bool(raw[2] & 1), 0 if step == "ack" else raw[3], named)


def _prio(raw: bytes) -> Prio | None:
    if len(raw) not in (3, 4):
        return None
    return Prio(bool(raw[2] & 1), raw[3] if len(raw) == 4 else None)
