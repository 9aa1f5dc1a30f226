"""Accessibility of a page, checked by axe-core."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe

SERIOUS = ("serious", "critical")


def serious_faults(page, *rules):
    """Serious faults as text; empty if there are none. With `rules`, only these are checked."""
    options = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = Axe().run(page, options=options).response["violations"]
    return "\n".join(
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    )
