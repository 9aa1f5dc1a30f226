"""The parts of a strategy's name: `NAME`, or `NAME/FORM` for another form of the strategy."""

from __future__ import annotations

SEPARATOR = "/"
IMPROVED = "improved"  # our own form of a strategy, as `NAME/improved`


def base_name(name: str) -> str:
    """Return the name without the form: "loss_aware" for "loss_aware/improved"."""
    return name.partition(SEPARATOR)[0]


def folder_name(name: str) -> str:
    """Return the name for use in the name of a folder: "loss_aware-improved"."""
    return name.replace(SEPARATOR, "-")
