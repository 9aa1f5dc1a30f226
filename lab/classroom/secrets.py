"""Secrets of a class: join codes, PINs, keys and cookies.

PINs that people choose are stored only as scrypt hashes, new PINs and cookies only as SHA-256
hashes. The fast hash is enough for these, because they are long random texts that nobody can guess.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading

from lab.errors import RequestError

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # without I and O, which look like 1 and 0
CODE_LETTERS = 6
PIN_LENGTHS = range(4, 33)
MOST_MEMORY = 64 * 2**20
COST, BLOCK, PARALLEL = 2**14, 8, 1  # of scrypt: 16 MiB and about 50 ms
NEW = "sha256$"  # begins the hash of a PIN from `new_pin`
AT_ONCE = threading.BoundedSemaphore(2)  # a flood of PINs does not fill the memory


def join_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LETTERS))


def key() -> str:
    """Return a new random key or cookie: 32 characters that are safe in URLs."""
    return secrets.token_urlsafe(24)


def new_pin() -> str:
    """Return a new PIN: twelve digits, in groups of four.

    It is too long to be found by trying over a network, however fast. So tries need no limit, and
    nobody can keep its owner out by wrong tries.
    """
    digits = f"{secrets.randbelow(10**12):012d}"
    return " ".join(digits[n : n + 4] for n in range(0, 12, 4))


def same(one: str, other: str) -> bool:
    """Return whether two texts are equal. The time taken does not show where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())


def hashed(cookie: str) -> str:
    """Return the SHA-256 hash of a cookie as hexadecimal text."""
    return hashlib.sha256(cookie.encode()).hexdigest()


def pin_hash(pin: str) -> str:
    """Return `scrypt$SALT$HASH` of a PIN. Raise `RequestError` if its length is not allowed."""
    if len(pin) not in PIN_LENGTHS:
        raise RequestError(f"a PIN has {PIN_LENGTHS[0]} to {PIN_LENGTHS[-1]} characters")
    salt = secrets.token_bytes(16)
    return f"scrypt${salt.hex()}${_scrypt(pin, salt).hex()}"


def new_pin_hash(pin: str) -> str:
    """Return `sha256$HASH` of a PIN from `new_pin`. Blanks in it do not matter."""
    return f"{NEW}{hashed(''.join(pin.split()))}"


def is_new_pin(stored: str) -> bool:
    """Return whether a stored hash is that of a PIN from `new_pin`, which nobody can guess."""
    return stored.startswith(NEW)


def is_pin(pin: str, stored: str) -> bool:
    """Return whether `stored`, a text from `pin_hash` or `new_pin_hash`, is the hash of `pin`."""
    if is_new_pin(stored):
        return same(new_pin_hash(pin), stored)
    _, salt, wanted = stored.split("$")
    return hmac.compare_digest(_scrypt(pin, bytes.fromhex(salt)), bytes.fromhex(wanted))


def _scrypt(pin: str, salt: bytes) -> bytes:
    with AT_ONCE:
        return hashlib.scrypt(
            pin.encode(), salt=salt, n=COST, r=BLOCK, p=PARALLEL, maxmem=MOST_MEMORY, dklen=32
        )
