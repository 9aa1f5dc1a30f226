"""Name versions of the lab, so that a result can say which version made it."""

from __future__ import annotations

from collections.abc import Mapping

from lab import __version__
from lab.run.manifest import commit


def present() -> str:
    """Return the version of this lab as text, such as `0.2.0 (f8f4b3f0aa11)`: the number, and the
    commit if it is known."""
    return _text(__version__, commit())


def made_by(versions: Mapping[str, str | None]) -> str:
    """Return the version of the lab in the field `versions` of a manifest, in the same form."""
    return _text(versions.get("lab"), versions.get("commit"))


def _text(number: str | None, made_at: str | None) -> str:
    return f"{number} ({made_at})" if made_at else str(number)
