"""A shift of the shares of a full link is compared with how much the shares varied before."""

from __future__ import annotations

from test_reasons import AFTER, BEFORE, link, scene, subflow

from lab.frame import Frame
from lab.results.explain import split as split


def test_a_shift_of_shares_within_what_they_varied_before_is_named_as_such():
    flip = {"t": 10.0, "kind": "flip", "ok": True, "target": "link.bottleneck.rate_mbps"}

    def frame(t):
        mp = 14.0 if t <= 5 else 8.0 if t <= 10 else 6.5
        rates = {"mp-1/1": mp, "sp-1/1": (19.0 if t <= 10 else 9.5) - mp}
        flows = {name: subflow(mbps) for name, mbps in rates.items()}
        return Frame(t, {}, {"bottleneck": link(19.8 if t <= 10 else 9.9)}, {}, flows)

    found = scene("shared_pipe", frame, flip | {"value": 10.0})
    (text,) = split.reasons(found, BEFORE, AFTER)
    assert "mp had 58 % and sp had 42 % before, and mp had 68 % and sp had 32 % after." in text
    assert text.endswith(
        "This shift is within what the shares varied before. Shares of a few TCP flows vary by "
        "themselves: before, mp had between 42 % and 74 % over 5 s."
    )
