"""Lose chosen packets of a simulated network."""

from __future__ import annotations

from lab.engines.sim.core import links


def lose(monkeypatch, lost):
    """Lose the packets for which `lost(packet)` is true. The core must be interpreted."""
    admits = links.admits

    def admits_or_loses(w, h, p):
        if not lost(p):
            return admits(w, h, p)
        links.drop(w, h, p)
        return False

    monkeypatch.setattr(links, "admits", admits_or_loses)
