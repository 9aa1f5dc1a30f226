"""Take apart the names of strategies: a plain name, or `NAME/FORM` for another form of it."""

from __future__ import annotations

SEPARATOR = "/"
IMPROVED = "improved"  # our own form of a strategy, as `NAME/improved`


def base_name(name: str) -> str:
    """Return the name of a strategy without its form: `loss_aware` for `loss_aware/improved`."""
    return name.partition(SEPARATOR)[0]


def folder_name(name: str) -> str:
    """Return the name of a strategy as part of a folder's name: `loss_aware-improved`."""
    return name.replace(SEPARATOR, "-")
