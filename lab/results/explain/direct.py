"""Explain what a changed setting did to the subflows and users that it concerns directly."""

from __future__ import annotations

from typing import Any

from controller.units import scenario_mbps
from lab.radio.mobility import Place, distance_m
from lab.results.effects import number_text
from lab.results.explain.links import FULL
from lab.results.explain.scene import Scene, listed, percent, subflow_number
from lab.results.flips import ALL_IT_GETS
from lab.results.labels import natural
from lab.results.stretches import Span
from lab.scenario.movement import places_of, with_place
from lab.summaries import EPSILON_S

NOTED = 0.05  # a smaller relative change of a rate is not explained
BUFFER_FULL = 0.9  # the receive buffer is full from this fraction on
OFTEN = 0.1  # of the samples, in which the receive buffer is full


def reasons(scene: Scene, target: str, value: Any, before: Span, after: Span) -> list[str]:
    """Return a sentence about what a change of a link, an access point or a user did
    directly.

    `target` and `value` are the changed parameter and its new value. Of a link, loss, rate and
    delay are explained; of an access point, the limit of Tier 1 and a user's radio rate; of a user,
    demand and position. Return []
    if the rates that the change concerns stayed about the same.
    """
    spans = (before, after)
    match target.split("."):
        case ["link", link, ("loss" | "rate_mbps" | "delay_ms") as field]:
            return _of_link(scene, link, field, value, spans)
        case ["user", user, "demand_mbps"]:
            return _of_demand(scene, user, value, spans)
        case ["user", user, "position"]:
            return _of_place(scene, user, spans)
        case ["cell", ap, "tier1_mbps"]:
            return _of_tier1(scene, ap, value, spans)
        case ["cell", ap, user, "rate_mbps"]:
            return _of_station(scene, ap, user, value, spans)
    return []


def _of_link(
    scene: Scene, link: str, field: str, value: Any, spans: tuple[Span, Span]
) -> list[str]:
    routes = scene.routes(spans[1].end_s)
    names = sorted(
        (name for name, path in routes.items() if link in {e.id for e in scene.crossed(path)}),
        key=natural,
    )
    was, now = (sum(scene.subflow_mbps(name, span) for name in names) for span in spans)
    if not names or abs(now - was) <= NOTED * max(was, now):
        return []
    crossed = f"{listed(names)} {'crosses' if len(names) == 1 else 'cross'} {scene.link_name(link)}"
    rates = f"{number_text(now)} instead of {number_text(was)} Mb/s"
    most = max(names, key=lambda name: scene.subflow_mbps(name, spans[0]))
    window = _pair(scene, most, "cwnd", spans)
    if field == "loss" and window:
        loses = f"now loses {100 * float(value):g} % of its" if value else "no longer loses"
        return [
            f"{crossed}, which {loses} packets, and carried {rates}.{_after_loss(most, window)}"
        ]
    trip = _pair(scene, most, "rtt_ms", spans)
    if field == "delay_ms" and trip and window:
        return [
            f"{crossed} and carried {rates}. A sender has one congestion window under way in a "
            f"round trip, and that of {most} took {trip[1]:.0f} instead of {trip[0]:.0f} ms, with "
            f"a window of {window[1]:.0f} instead of {window[0]:.0f} packets."
        ]
    if field == "rate_mbps" and len({scene.user_of(name) for name in names}) == 1:
        return _of_rate(scene, link, crossed, rates, spans[1])
    return []  # `split` explains a link that several users share


def _after_loss(subflow: str, window: tuple[float, float]) -> str:
    was, now = (f"{packets:.0f}" for packets in window)
    if was == now:
        return ""
    return (
        " After each lost packet a sender reduces its congestion window: that of "
        f"{subflow} was {now} instead of {was} packets."
    )


def _of_rate(scene: Scene, link: str, crossed: str, rates: str, after: Span) -> list[str]:
    """Return a sentence about a link with a new rate, or [] if the link is not full with it."""
    limit = next(
        (scene.rate_mbps(each, after.end_s) for each in scene.network.links if each.id == link), 0.0
    )
    carried = scene.link_mbps(link, after)
    if not limit or carried < FULL * limit:
        return []
    return [
        f"{crossed}, which is full: {number_text(min(carried, limit))} of {number_text(limit)} "
        f"Mb/s of frames. That is {rates} of payload."
    ]


def _of_demand(scene: Scene, user: str, value: Any, spans: tuple[Span, Span]) -> list[str]:
    was, now = (scene.user_mbps(user, span) for span in spans)
    if abs(now - was) <= NOTED * max(was, now):
        return []
    asks = ALL_IT_GETS if value is None else f"{number_text(float(value))} Mb/s"
    return [
        f"{user} asks for {asks} now, and got {number_text(now)} instead of {number_text(was)} "
        "Mb/s."
    ]


def _of_place(scene: Scene, user: str, spans: tuple[Span, Span]) -> list[str]:
    """Return a sentence about a user that was moved: how far its access points are, and what it
    would get there alone."""
    was, now = (scene.user_mbps(user, span) for span in spans)
    places = [_place(scene, user, span.end_s) for span in spans]
    if abs(now - was) <= NOTED * max(was, now) or None in places:
        return []
    before, after = (listed(_signals(scene, user, place)) for place in places if place)
    return [
        f"{user} is {after} now. Before, it was {before}. It got {number_text(now)} instead of "
        f"{number_text(was)} Mb/s."
    ]


def _place(scene: Scene, user: str, t: float) -> Place | None:
    """Return where a user was in the last sample until time `t`."""
    last = next(
        (each.user.get(user) for each in reversed(scene.frames) if each.t <= t + EPSILON_S), None
    )
    return (last.x_m, last.y_m) if last and last.x_m is not None and last.y_m is not None else None


def _signals(scene: Scene, user: str, place: Place) -> list[str]:
    network = with_place(scene.network, user, place)
    scale, places = scene.scenario.rate_scale, places_of(network)
    return [
        f"{distance_m(place, places[cell.ap]):.0f} m from {cell.ap} "
        f"({number_text(scenario_mbps(each.rate_bps, scale))} Mb/s alone there)"
        for cell in network.cells
        for each in cell.stations
        if each.user == user
    ]


def _of_tier1(scene: Scene, ap: str, value: Any, spans: tuple[Span, Span]) -> list[str]:
    """Return a sentence about both tiers of an access point whose Tier 1 has a new limit."""
    (was, was2), (now, now2) = ([scene.tier_mbps(ap, n, span) for n in (1, 2)] for span in spans)
    if max(abs(now - was), abs(now2 - was2)) <= NOTED * max(was + was2, now + now2):
        return []
    limit = "no limit" if value is None else f"a limit of {number_text(float(value))} Mb/s"
    return [
        f"Tier 1 of {ap} has {limit} now and carried {number_text(now)} instead of "
        f"{number_text(was)} Mb/s; Tier 2 there carried {number_text(now2)} instead of "
        f"{number_text(was2)} Mb/s."
    ]


def _of_station(
    scene: Scene, ap: str, user: str, value: Any, spans: tuple[Span, Span]
) -> list[str]:
    """Return a sentence about the air that a station with a new radio rate needs."""
    old = scene.station_mbps(ap, user, spans[0].end_s)
    if not old or not value:
        return []
    was, now = (scene.station_carried_mbps(ap, user, span) for span in spans)
    if max(was / old, now / float(value)) < NOTED:
        return []
    ratio = old / float(value)
    longer = f"{ratio:.2g} times as long" if ratio > 1 else f"{percent(ratio)} of the time"
    return [
        f"Each packet of {user} now needs the air of {ap} {longer}: {user} got "
        f"{number_text(now)} Mb/s there with {percent(now / float(value))} of the air, before "
        f"{number_text(was)} Mb/s with {percent(was / old)}."
    ]


def buffer_full(scene: Scene, before: Span, after: Span) -> list[str]:
    """Return a sentence about the user whose receive buffer was full of waiting data most often.

    Such a sender has to wait although its windows would let it send. Return [] if this happened as
    often before a change as after it.
    """
    size_kb = scene.scenario.multipath.receive_buffer_kb
    found = []
    for user in scene.network.multipath:

        def is_full(frame: Any, user: str = user) -> float | None:
            held = getattr(frame.user.get(user), "held_back_kb", None)
            return None if held is None else float(held >= BUFFER_FULL * size_kb)

        was, now = (span.mean(scene.frames, is_full) or 0.0 for span in (before, after))
        if now >= OFTEN and now > 2 * was:
            found.append((now, user))
    if not found:
        return []
    share, user = max(found)
    return [
        f"In {percent(share)} of the samples the receive buffer of {user} ({size_kb:g} kB) was "
        "full of data that waits for earlier data of a slower subflow, so the sender had to wait."
    ]


def _pair(
    scene: Scene, subflow: str, field: str, spans: tuple[Span, Span]
) -> tuple[float, float] | None:
    was, now = (span.mean(scene.frames, subflow_number(subflow, field)) for span in spans)
    return None if was is None or now is None else (was, now)
