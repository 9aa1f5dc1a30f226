"""Effects of a change: means of the 10 s before and after it."""

from __future__ import annotations

import math

import pytest

from lab.frame import Frame, UserSample
from lab.metrics import Watched
from lab.results import effects
from lab.results.stretches import Span

UE1 = Watched("user", "ue1", "mbps")
EVERYBODY = Watched("user", "*", "mbps")


def frames(rate, until=40.0, step=0.5):
    """Frames in which ue1 gets `rate(t)` in the interval that ends at t."""
    times = [step * n for n in range(1, round(until / step) + 1)]
    return [Frame(t, user={"ue1": UserSample(rate(t)), "ue2": UserSample(1.0)}) for t in times]


def step_at(at, before=3.0, after=6.0):
    return lambda t: before if t <= at else after


def test_the_means_of_ten_seconds_before_and_after():
    found = effects.effect(frames(step_at(20)), 20.0, [20.0], UE1)
    assert (found.before, found.after) == (pytest.approx(3), pytest.approx(6))
    assert (found.seconds_before, found.seconds) == (10, 10)
    assert found.is_final
    said = effects.sentence(found, "ue1 got {after} instead of {before} Mb/s in {seconds} s.")
    assert said == "ue1 got 6 instead of 3 Mb/s in 10 s."
    assert effects.sentence(found) == "ue1: throughput: 6 instead of 3 Mb/s in the 10 s after."


def test_samples_far_from_the_change_do_not_count():
    found = effects.effect(frames(lambda t: t), 20.0, [20.0], UE1)
    assert found.before == pytest.approx(sum(10 + n / 2 for n in range(1, 21)) / 20)
    assert found.after == pytest.approx(sum(20 + n / 2 for n in range(1, 21)) / 20)


def test_a_window_ends_at_the_next_change_and_begins_at_the_last():
    found = effects.effect(frames(step_at(20)), 20.0, [16.0, 20.0, 23.0], UE1)
    assert (found.seconds_before, found.seconds, found.is_final) == (4, 3, True)
    assert found.spans == (Span(16, 20), Span(20, 23))


def test_a_sample_that_began_before_the_change_and_ended_after_it_counts_on_no_side():
    run = frames(lambda t: 3.0 if t < 20.5 else 100.0 if t == 21 else 6.0, step=1.0)
    found = effects.effect(run, 20.5, [20.5], UE1)
    assert (found.before, found.after) == (3, 6)
    assert (found.seconds_before, found.seconds) == (9, 9)


def test_a_window_ends_when_the_watched_traffic_ends():
    done_at_24 = frames(lambda t: 3.0 if t <= 20 else 6.0 if t <= 24 else 0.0)
    found = effects.effect(done_at_24, 20.0, [20.0], UE1, until_s=24.0)
    assert (found.after, found.seconds, found.is_final) == (pytest.approx(6), 4, True)
    late = effects.effect(done_at_24, 30.0, [30.0], UE1, until_s=24.0)
    assert (late.is_measured, late.is_final) == (False, True)
    assert "the transfers had finished" in effects.sentence(late, "{before}{after}")


def test_the_sum_over_all_users():
    found = effects.effect(frames(step_at(20)), 20.0, [20.0], EVERYBODY)
    assert (found.before, found.after) == (pytest.approx(4), pytest.approx(7))


def test_a_measurement_that_goes_on_is_not_final():
    found = effects.effect(frames(step_at(20), until=24), 20.0, [20.0], UE1)
    assert (found.seconds, found.is_final) == (4, False)
    assert found.spans == (Span(10, 20), Span(20, 24))
    begun = effects.effect(frames(step_at(20), until=24), 24.0, [24.0], UE1, acts_s=26.0)
    assert begun.spans[1] == Span(26, 26)


@pytest.mark.parametrize("at", [0.0, 40.0])
def test_at_the_start_and_at_the_end_there_is_no_comparison(at):
    found = effects.effect(frames(step_at(20)), at, [at], UE1)
    assert not found.is_measured
    said = effects.sentence(found, "{before}{after}")
    assert said.startswith(
        f"ue1: throughput: {'no comparison' if at == 0 else 'too early to tell'}"
    )


@pytest.mark.parametrize("settling_s", [3.0, 6.5, 10.0])
@pytest.mark.parametrize("acts_s", [None, 21.0])
def test_nothing_is_said_about_a_change_before_the_rates_have_settled(settling_s, acts_s):
    def measured(until, **more):
        seen = frames(step_at(20), until)
        more = {"acts_s": acts_s, "settling_s": settling_s} | more
        return effects.effect(seen, 20.0, [20.0], UE1, **more)

    early = measured(20 + settling_s - 0.5)
    assert not early.is_measured
    assert effects.sentence(early) == (
        "ue1: throughput: too early to tell, it settles in about 1 s."
    )
    over = effects.sentence(measured(20 + settling_s - 0.5, is_over=True))
    assert over == (
        f"ue1: throughput: too early to tell, it settles about {settling_s:.2g} s after a change, "
        f"and {settling_s - 0.5:.3g} s were measured."
    )
    cut = measured(40.0, until_s=20 + settling_s - 0.5)
    assert effects.sentence(cut) == over
    assert "6 instead of 3 Mb/s" in effects.sentence(measured(20 + settling_s))


def test_rates_settle_after_twenty_round_trips_and_two_decisions():
    assert effects.settling_s(rtt_ms=200, interval_s=0) == 4.0
    assert effects.settling_s(rtt_ms=200, interval_s=2.5) == 9.0
    assert effects.settling_s(rtt_ms=10, interval_s=0) == effects.SHORTEST_S
    assert effects.settling_s(rtt_ms=200, interval_s=60) == effects.WINDOW_S


def test_what_was_not_measured_is_not_zero():
    found = effects.effect(frames(step_at(20)), 20.0, [20.0], Watched("ap", "wifi1", "meter_mbps"))
    assert (found.before, found.after) == (None, None)
    assert "not measured" in effects.sentence(found)


@pytest.mark.parametrize(("user", "change"), [("early", -3.0), ("late", 3.0)])
def test_a_mean_on_one_side_alone_is_no_comparison(user, change):
    rows = [
        Frame(t / 2, user={"early" if t <= 40 else "late": UserSample(3.0)}) for t in range(1, 81)
    ]
    found = effects.effect(rows, 20.0, [20.0], Watched("user", user, "mbps"))
    assert [found.before, found.after].count(None) == 1
    assert not found.is_measured
    assert found.change == change  # a missing mean counts as 0
    assert "no comparison, it was not measured" in effects.sentence(found, "{before}{after}")


@pytest.mark.parametrize(("seconds", "is_measured"), [(2.0, True), (1.5, False)])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_mean_needs_two_seconds_on_each_side(side, seconds, is_measured):
    other = 20 - seconds if side == "before" else 20 + seconds
    found = effects.effect(frames(step_at(20)), 20.0, sorted([20.0, other]), UE1)
    assert min(found.seconds_before, found.seconds) == seconds
    assert found.is_measured == is_measured
    reason = "too little time before" if side == "before" else "too early to tell"
    assert (reason in effects.sentence(found)) != is_measured


def test_samples_of_unequal_length_weigh_by_their_length():
    rows = [Frame(t, user={"ue1": UserSample(rate)}) for t, rate in ((8, 1.0), (10, 6.0), (20, 2))]
    assert effects.effect(rows, 10.0, [10.0], UE1).before == pytest.approx(2.0)


def test_nothing_before_and_after_is_said_without_the_template():
    found = effects.effect(frames(lambda t: 0.0), 20.0, [20.0], UE1)
    assert effects.sentence(found, "{after} instead of {before}").startswith("ue1: throughput: 0")


def test_rates_have_three_digits_and_small_ones_are_zero():
    assert [effects.number_text(each) for each in (6.1849, 123.4, 0.0449, 0.0001)] == [
        "6.18",
        "123",
        "0.0449",
        "0",
    ]
    assert effects.number_text(effects.NOTHING) == "0.005"
    assert effects.number_text(None) == "nothing measured"


def swinging(t):
    """Between 2 and 6 Mb/s, with a period of 24 s."""
    return 4 + 2 * math.sin(2 * math.pi * t / 24)


@pytest.mark.parametrize(("after", "clear"), [(4.5, False), (9.0, True), (0.5, True)])
def test_an_effect_within_the_ordinary_swing_has_no_cause(after, clear):
    run = frames(lambda t: swinging(t) if t <= 30 else after)
    found = effects.effect(run, 30.0, [30.0], UE1)
    usual = effects.usual(run, 30.0, [30.0], found)
    assert effects.is_clear(found, usual) == clear
    said = effects.sentence(found, "ue1 got {after}, not {before} Mb/s. The cause is X.", usual)
    assert ("The cause is X." in said) == clear
    assert ("No clear change: before it, means over 10 s were between 2.53" in said) != clear


def test_the_swing_before_another_change_does_not_count_nor_a_time_too_short_for_it():
    run = frames(lambda t: 20.0 if t <= 10 else 3.0 if t <= 30 else 6.0)
    found = effects.effect(run, 30.0, [10.0, 30.0], UE1)
    assert effects.usual(run, 30.0, [10.0, 30.0], found)[1:] == (3, 3)
    assert effects.usual(run, 30.0, [27.0, 30.0], found) is None
    assert effects.usual(run, 30.0, [30.0], found) == (Span(20, 30), 3, 20)
    early = frames(lambda t: 1.0 if t <= 5 else 3.0)
    found = effects.effect(early, 30.0, [30.0], UE1)
    assert effects.usual(early, 30.0, [30.0], found) == (Span(20, 30), 2, 3)
    assert effects.is_clear(found, None)


def test_the_mean_after_a_change_can_begin_later_than_the_change():
    plain = effects.effect(frames(step_at(22)), 22.0, [22.0], UE1)
    found = effects.effect(frames(step_at(22)), 20.0, [20.0, 22.0], UE1, acts_s=22.0)
    assert (found.before, found.after) == (plain.before, plain.after)
    assert found.spans[1].start_s == 22.0


@pytest.mark.parametrize("usual", [None, (Span(10, 20), 2.0, 4.0)])
def test_an_effect_of_which_nothing_was_measured_afterwards_is_not_clear(usual):
    found = effects.effect(frames(step_at(20), until=20.0), 20.0, [20.0], UE1)
    assert found.after is None
    assert not effects.is_clear(found, usual)
