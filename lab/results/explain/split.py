"""Explain how users divide a link that is full before and after a change, and how much their shares
vary."""

from __future__ import annotations

from collections.abc import Sequence

from lab.results.effects import number_text
from lab.results.explain.links import MOST_SHARED, Shared, load_text, overlaps, shared
from lab.results.explain.scene import Scene, listed, percent
from lab.results.labels import natural
from lab.results.stretches import Span

SHIFT = 0.03  # a smaller change of a share counts as none


def reasons(scene: Scene, before: Span, after: Span, shares_changed: bool = False) -> list[str]:
    """Return a sentence for each shared link that is full both before and after a change.

    If the rate of the link is unchanged, the sentence says that one user's gain is another user's
    loss. Otherwise the sentence has the users' shares before and after. A new rate of the link
    alone does not move the shares. If they moved, the sentence adds how much they had varied before
    the change. `shares_changed` means that the change itself concerns the shares; nothing is added
    then.
    """
    was, texts = shared(scene, before), []
    for each in shared(scene, after):
        old = next((other for other in was if overlaps(each, other)), None)
        users = sorted({scene.user_of(name) for name in each.subflows}, key=natural)
        if old is None or len(users) < 2:
            continue
        are = "is" if len(each.links) == 1 else "are"
        text = f"{scene.named(each.links)} {are} full before and after"
        if old.rate_mbps == each.rate_mbps:
            text += (
                f" ({number_text(each.rate_mbps)} Mb/s), so what one user gains there, another one "
                "loses."
            )
        else:
            text += f": {load_text(old)}, then {load_text(each)}, for all together."
            text += _moved(scene, users, each, (before, after), shares_changed)
        texts.append(text)
    return texts[:MOST_SHARED]


def _moved(
    scene: Scene,
    users: Sequence[str],
    each: Shared,
    spans: tuple[Span, Span],
    shares_changed: bool,
) -> str:
    """Return text about each user's share before and after a change.

    If the shares moved, the text adds whether they had varied as much before the change. Nothing is
    added if `shares_changed` is True.
    """
    old, new = (parts(scene, users, each.subflows, span) for span in spans)
    text = f" Of its payload, {in_words(old)} before, and {in_words(new)} after."
    most = max(users, key=lambda user: round(abs(new[user] - old[user]), 6))
    if abs(new[most] - old[most]) < SHIFT or shares_changed:
        return text
    usual = varied(scene, users, each.subflows, most, spans[0].end_s, spans[1].seconds)
    if usual is None:
        return f"{text} The measurements do not show why the shares moved."
    span, lowest, highest = usual
    before = (
        f"Shares of a few TCP flows vary by themselves: before, {most} had between "
        f"{percent(lowest)} and {percent(highest)} over {number_text(span.seconds)} s"
    )
    if lowest <= new[most] <= highest:
        return f"{text} This shift is within what the shares varied before. {before}."
    return f"{text} The measurements do not show why the shares moved. {before}."


def varied(
    scene: Scene,
    users: Sequence[str],
    subflows: Sequence[str],
    user: str,
    at_s: float,
    seconds: float,
) -> tuple[Span, float, float] | None:
    """Return how a user's share of the payload of some subflows varied before `at_s`.

    The result is that of `lab.results.effects.variation`, with a sliding window of `seconds`.
    """
    return scene.varied(at_s, seconds, lambda part, span: parts(part, users, subflows, span)[user])


def parts(
    scene: Scene, users: Sequence[str], subflows: Sequence[str], span: Span
) -> dict[str, float]:
    """Return the fraction of the payload of `subflows` that each user received in an interval."""
    rates = dict.fromkeys(users, 0.0)
    for name in subflows:
        rates[scene.user_of(name)] += scene.subflow_mbps(name, span)
    total = sum(rates.values()) or 1.0
    return {user: rate / total for user, rate in rates.items()}


def in_words(shares: dict[str, float]) -> str:
    """Return text such as `mp had 54 % and sp had 46 %`."""
    return listed([f"{user} had {percent(share)}" for user, share in shares.items()])
