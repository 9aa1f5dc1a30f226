"""Parse MPTCP options from bytes: version 0 (RFC 6824) and version 1 (RFC 8684).

MP_CAPABLE differs: a v1 SYN contains no key, and the third ACK may contain a data length. In both
versions the SYN/ACK contains the server's key. The token, a hash of this key, identifies the
connection in every MP_JOIN that is sent to the server.
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
    """Hold an MP_CAPABLE option (RFC 8684 and RFC 6824, section 3.1).

    A field is None if the option is too short to contain it.
    """

    version: int
    flags: int
    sender_key: bytes | None = None
    receiver_key: bytes | None = None
    data_length: int | None = None

    def token(self) -> str | None:
        """Return the token of the sender's key in hexadecimal (RFC 8684, section 3.2).

        Return None if the option contains no key.
        """
        return None if self.sender_key is None else token(self.sender_key, self.version)


@dataclass(frozen=True)
class Join:
    """Hold an MP_JOIN option (section 3.2 of RFC 8684 and RFC 6824).

    `step` names the packet of the handshake: syn, syn_ack or ack. Only the SYN has a token. The
    third ACK has neither address id nor backup flag; in that case `address_id` is 0 and `backup`
    False.
    """

    step: str
    backup: bool
    address_id: int
    token: str | None = None


@dataclass(frozen=True)
class Prio:
    """Hold an MP_PRIO option, which sets the backup flag (RFC 8684 and RFC 6824, section 3.3.8).

    With an `address_id` (v0 only), the flag applies to all subflows of this address. Without one,
    it applies to the subflow on which the option arrived.
    """

    backup: bool
    address_id: int | None = None


@dataclass(frozen=True)
class Other:
    """Hold the name of an MPTCP option other than MP_CAPABLE, MP_JOIN and MP_PRIO."""

    name: str


Option = Capable | Join | Prio | Other


def token(key: bytes, version: int) -> str:
    """Return the MPTCP token of a key: the first 32 bits of its hash, in hexadecimal.

    The hash is SHA-1 in version 0 and SHA-256 in version 1.
    """
    digest = hashlib.sha256(key) if version else hashlib.sha1(key, usedforsecurity=False)
    return digest.hexdigest()[:8]


def parse(options: bytes) -> Option | None:
    """Parse the options of a TCP segment and return its most important MPTCP option.

    A segment may contain several MPTCP options, such as DSS and MP_PRIO. Return the first
    MP_CAPABLE, MP_JOIN or MP_PRIO; without these, the first other MPTCP option; else None. Whatever
    the bytes are, no exception is raised.
    """
    found = [option for option in map(_option, _mptcp_options(options)) if option is not None]
    named = [option for option in found if not isinstance(option, Other)]
    return next(iter(named or found), None)


def _mptcp_options(options: bytes) -> Iterator[bytes]:
    """Yield each MPTCP option among the options of a TCP segment (RFC 9293, section 3.1).

    Stop at the first option whose length is not valid.
    """
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
