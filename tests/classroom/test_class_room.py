"""The rules of a class, without HTTP and without runs."""

from __future__ import annotations

import threading
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from class_fakes import Clock
from hypothesis import given
from hypothesis import strategies as st

from lab.classroom import door, grades, roster, rules, views
from lab.classroom.door import Attempts, Newcomer
from lab.classroom.lesson import Forbidden, NotNow, Place, TooMuch, Unknown
from lab.classroom.queue import Load
from lab.classroom.room import Room
from lab.errors import RequestError

NO_CHECK = lambda run: None  # noqa: E731


def at(step: str, seat: str = "s1") -> Place:
    return Place(seat, "small", step)


def finish(room, run, finished_run, status="complete"):
    """End a run with the files of a finished run."""
    import shutil

    room.queue.remove(run.id)
    shutil.copytree(finished_run, room.run_folder(run.id))
    room.ended(run, status, "digest")


def test_a_run_is_locked_until_the_prediction_and_then_seals_it(room, seat):
    with pytest.raises(NotNow, match="Predict first: How much"):
        room.request_run(at("both"), {}, NO_CHECK)
    room.answer(at("guess"), 12)
    room.answer(at("guess"), 13)
    room.request_run(at("both"), {}, NO_CHECK)
    with pytest.raises(NotNow, match="sealed"):
        room.answer(at("guess"), 14)
    assert room.lesson.step(at("guess")).answer == 13


def test_after_three_wrong_tries_each_waits_twice_as_long(room, seat, clock):
    for _ in range(3):
        room.answer(at("cause"), "one")
    for wait_s in (15, 30, 60):
        with pytest.raises(TooMuch, match="wrong") as caught:
            room.answer(at("cause"), "one")
        assert caught.value.wait_s == pytest.approx(wait_s)
        clock.now += wait_s
        room.answer(at("cause"), "three")
    clock.now += 1000
    room.answer(at("cause"), "two")
    assert room.lesson.step(at("cause")).points == 0  # of 2: two wrong choices were enough
    with pytest.raises(NotNow, match="passed already"):
        room.answer(at("cause"), "one")


def test_a_run_is_changed_by_its_seat_within_the_worksheet_and_by_the_instructor(room, seat):
    room.answer(at("guess"), 12)
    run = room.request_run(at("both"), {}, NO_CHECK)
    now = room.clock()
    for target, by in (("link.path1.loss", "s1"), ("link.path2.up", None)):
        assert rules.flipped(room.lesson, run, target, 0, by, now).target == target
    with pytest.raises(Forbidden):
        rules.flipped(room.lesson, run, "link.path1.loss", 0, "s2", now)
    with pytest.raises(RequestError):
        rules.flipped(room.lesson, run, "link.path2.up", 0, "s1", now)


@pytest.mark.parametrize(("wrong", "points"), [(0, 2), (1, 1), (2, 0), (3, 0)])
def test_each_wrong_choice_takes_its_share_of_the_points(room, seat, clock, wrong, points):
    for _ in range(wrong):
        room.answer(at("cause"), "one")
    clock.now += 60
    room.answer(at("cause"), "two")
    assert room.lesson.step(at("cause")).points == points
    record = grades.read_record(room.folder)
    (handed_in,) = grades.submissions(room.folder, record.state)
    assert not list(grades.mark_again(room.folder, record.state, handed_in))
    assert handed_in.points == points


def test_a_choice_may_be_changed_freely_while_nobody_sees_results(room, seat, clock):
    sheet = room.folder.worksheets["small"]
    later = datetime.fromtimestamp(clock.now + 3600, tz=UTC)
    room.folder.worksheets["small"] = sheet.model_copy(update={"results_from": later})
    for value in ("one", "three", "one", "two"):
        room.answer(at("cause"), value)
    assert room.lesson.step(at("cause")).points == 2


@pytest.mark.parametrize(
    ("taken", "alike"),
    [
        ("Paco", "\u0420\u0430\u0441\u043e"),  # in Cyrillic letters
        ("NOTE", "\u039d\u039f\u03a4\u0395"),  # in Greek letters
        ("Ivan", "lvan"),
        ("Bob 10", "Bob lO"),
        ("Ada", "\uff21da"),  # a fullwidth A
        ("office", "o\ufb03ce"),  # a ligature
    ],
)
def test_a_name_that_looks_like_a_taken_one_is_taken(room, taken, alike):
    def join(name):
        return room.join("1.2.3.4", room.folder.settings.code, (Newcomer(name, ""),))

    join(taken)
    with pytest.raises(NotNow, match="is taken"):
        join(alike)
    join("Zoe")


@pytest.mark.parametrize("pair", [("Ivan", "ivan"), ("Ivan", "lvan"), ("Zoe", " zoe ")])
def test_two_people_of_a_seat_have_different_names(room, pair):
    people = [Newcomer(each) for each in pair]
    with pytest.raises(RequestError, match="same name"):
        room.join("1.2.3.4", room.folder.settings.code, people)


def test_names_of_the_list_of_a_class_may_look_alike(room):
    names = ("Kai 1", "Kai l")
    rows = {roster.folded(name): roster.Entry(name, None, {}) for name in names}
    object.__setattr__(room.folder, "roster", roster.Roster(rows))
    for name in names:
        room.join("1.2.3.4", room.folder.settings.code, [Newcomer(name)])
    with pytest.raises(NotNow, match="is taken"):
        room.join("1.2.3.4", room.folder.settings.code, [Newcomer(names[0])])


@pytest.mark.parametrize("name", ["P\u0430co", "\u0391da", "\u041f\u03c0"])
def test_a_word_of_a_name_has_letters_of_one_alphabet(name):
    with pytest.raises(RequestError, match="one alphabet"):
        roster.cleaned(name)


@pytest.mark.parametrize(
    "name", ["\u0410\u043d\u043d\u0430 Smith", "Jos\u00e9 2", "\u674e\u30c7\u30a4", "O'Neil-\u00d8"]
)
def test_names_of_all_languages_are_accepted(name):
    assert roster.cleaned(name) == name


def test_only_the_quota_of_runs_waits(room, seat):
    room.answer(at("guess"), 12)
    runs = [room.request_run(at("both"), {}, NO_CHECK) for _ in range(3)]
    with pytest.raises(TooMuch, match="3 of your runs"):
        room.request_run(at("both"), {}, NO_CHECK)
    room.withdraw(runs[1])
    assert room.request_run(at("both"), {}, NO_CHECK).id == "s1-small-both-4"


@pytest.mark.parametrize(
    ("step", "value", "words"),
    [
        ("guess", 41, "out of range"),
        ("guess", True, "no answers"),
        ("guess", "12", "write a number"),
        ("guess", [[0, 1]], "write a number"),
        ("cause", "four", "unknown"),
        ("cause", None, "is no answer"),
        ("rate", {"x": 1}, "is no answer"),
        ("words", "x" * 5001, "5000 characters"),
        ("words", "   ", "5000 characters"),
        ("words", 7, "write a text"),
    ],
)
def test_an_answer_of_another_form_is_refused(room, seat, step, value, words):
    with pytest.raises(RequestError, match=words):
        room.answer(at(step), value)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (at("nothing"), Unknown),
        (at("both"), Unknown),
        (Place("s9", "small", "cause"), Unknown),
        (Place("s1", "other", "cause"), Unknown),
    ],
)
def test_what_is_not_there_is_unknown(room, seat, place, kind):
    with pytest.raises(kind):
        room.answer(place, "two")


def test_students_choose_only_what_the_step_allows(room, seat):
    room.answer(at("guess"), 12)
    for chosen in (
        {"topology.paths.1.delay_ms": 1},
        {"multipath.server_enabled": 3},
        {"strategy.name": "x.py"},
    ):
        with pytest.raises(RequestError, match=r"unknown|not allowed"):
            room.request_run(at("both"), chosen, NO_CHECK)


def test_a_check_needs_a_run_and_the_same_runs_are_no_second_try(room, seat, finished_run):
    room.answer(at("guess"), 12)
    room.check(at("enough"))
    assert "missing" in room.lesson.step(at("enough")).problem
    assert room.lesson.step(at("enough")).tries == 0
    with pytest.raises(NotNow, match="not complete yet"):
        room.answer(at("rate"), 3)
    for tries in (1, 2):
        finish(room, room.request_run(at("both"), {}, NO_CHECK), finished_run)
        for _ in range(3):
            room.check(at("enough"))
        assert room.lesson.step(at("enough")).wrong == tries
    throughput = room.run_files("s1-small-both-1").result["throughput_mbps"]
    room.answer(at("rate"), throughput + 4321)
    assert room.lesson.step(at("rate")).passed


def test_nothing_goes_while_the_class_is_frozen_and_the_clock_stands(room, seat, clock):
    room.freeze(True)
    with pytest.raises(NotNow, match="stopped the class"):
        room.answer(at("cause"), "two")
    clock.now += 3000
    room.freeze(False)
    room.answer(at("cause"), "two")
    assert room.lesson.left_s(seat, "small", clock.now) == pytest.approx(1200)


def test_the_time_ends_and_can_be_extended_for_one_seat(room, seat, clock):
    other, _ = room.join("here", room.folder.settings.code, [Newcomer("Bo")])
    room.open(other, "small")
    clock.now += 1201
    for each in (seat, other):
        with pytest.raises(NotNow, match="is over"):
            room.answer(at("cause", each), "two")
    room.extend("small", other, 5)
    room.answer(at("cause", other), "two")
    with pytest.raises(NotNow, match="is over"):
        room.answer(at("cause", seat), "two")


def test_a_person_grades_texts_only(room, seat):
    with pytest.raises(NotNow):
        room.grade(at("words"), 2, "")
    room.answer(at("words"), "because")
    for points in (-1, 4):
        with pytest.raises(RequestError, match="0 to 3"):
            room.grade(at("words"), points, "")
    room.grade(at("words"), 2, "short")
    with pytest.raises(RequestError, match="only texts"):
        room.grade(at("cause"), 2, "")
    with pytest.raises(NotNow, match="was graded"):
        room.answer(at("words"), "more")


def test_only_the_instructor_makes_runs_for_all_and_one_at_a_time(room, seat):
    room.answer(at("guess"), 12)
    with pytest.raises(NotNow, match="instructor makes"):
        room.request_run(at("shown"), {}, NO_CHECK)
    with pytest.raises(NotNow, match="each student"):
        room.request_run_for_all("small", "both", None, NO_CHECK)
    run = room.request_run_for_all("small", "shown", "sim", NO_CHECK)
    assert (run.id, run.seat, run.engine) == ("class-small-shown-1", None, "sim")
    with pytest.raises(NotNow, match="has not ended"):
        room.request_run_for_all("small", "shown", None, NO_CHECK)


def test_all_state_comes_back_from_the_journal(room, seat, class_folder, finished_run, clock):
    room.answer(at("guess"), 12)
    finish(room, room.request_run(at("both"), {}, NO_CHECK), finished_run)
    room.check(at("enough"))
    room.answer(at("words"), "because")
    room.grade(at("words"), 2, "")
    room.point_at(None, "small", "cause")
    room.extend("small", None, 3)
    room.freeze(True)
    room.request_run_for_all("small", "shown", "sim", NO_CHECK)
    again = Room(class_folder, clock)
    assert vars(again.state) == vars(room.state)
    again.close()


def test_joining_needs_the_code_and_a_free_name(room, seat):
    code = room.folder.settings.code
    with pytest.raises(Forbidden, match="code is wrong"):
        room.join("here", "AAAAAA", [Newcomer("Bo")])
    with pytest.raises(NotNow, match="taken"):
        room.join("here", code, [Newcomer("  aDA ")])
    with pytest.raises(RequestError, match="same name"):
        room.join("here", code, [Newcomer("Cy"), Newcomer("cy")])
    for name in ("", " ", "x" * 41, "a\u202eb"):
        with pytest.raises(RequestError, match="1 to 40"):
            room.join("here", code, [Newcomer(name)])
    pair, cookie = room.join("here", code.lower(), [Newcomer("Cy", "1234"), Newcomer("Di")])
    assert room.lesson.seat(pair).names == ["Cy", "Di"]
    assert room.seat_of(cookie) == pair
    assert room.seat_of("x") is None
    assert cookie not in room.folder.journal.read_text()
    assert "1234" not in room.folder.journal.read_text()


def refusals(act, tries):
    """How often each kind of refusal came."""
    found = Counter()
    for n in range(tries):
        with pytest.raises((Forbidden, TooMuch)) as caught:
            act(n)
        found[caught.type] += 1
    return found


@given(st.integers(1, 5), st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40))))
def test_attempts_are_limited_in_every_window_of_time(most, tries):
    """Whatever is tried when: an attempt is allowed if fewer than `most` others are recent."""
    now, allowed = 0.0, {"a": [], "b": []}
    attempts = Attempts(most, 60.0, lambda: now)
    for key, pause_s in tries:
        now += pause_s
        recent = [at for at in allowed[key] if at > now - 60]
        if len(recent) < most:
            assert attempts.wait_s(key) == 0
            attempts.check(key)
            attempts.count(key)
            allowed[key].append(now)
            continue
        assert attempts.wait_s(key) == recent[-most] + 60 - now
        with pytest.raises(TooMuch) as caught:
            attempts.check(key)
        assert caught.value.wait_s == max(1, recent[-most] + 60 - now)


def test_addresses_without_recent_attempts_are_forgotten(monkeypatch):
    now = 0.0
    monkeypatch.setattr(door, "MOST_KEYS", 3)
    attempts = Attempts(1, 60.0, lambda: now)
    for key in "abc":
        attempts.count(key)
    assert attempts._made.keys() == set("abc")
    now = 59.0
    attempts.count("d")
    assert attempts._made.keys() == set("abcd")
    now = 61.0
    attempts.count("e")
    assert attempts._made.keys() == set("de")
    assert attempts.wait_s("d") == 58


def test_wrong_codes_are_counted_and_stop_no_right_one(room, seat):
    wrong = lambda n: room.join("here", "AAAAAA", [Newcomer("Bo")])  # noqa: E731
    assert refusals(wrong, 400) == {Forbidden: 10, TooMuch: 390}
    room.join("here", room.folder.settings.code, [Newcomer("Bo")])


def test_wrong_pins_make_the_next_tries_slow_for_one_name_at_one_address(room, seat):
    code, slept = room.folder.settings.code, []
    room.door._sleep = slept.append
    for name in ("Cy", "Di"):
        room.join("here", code, [Newcomer(name, "1234")])
    wrong = lambda n: room.come_back("here", code, Newcomer("Cy", f"00{n:02}"))  # noqa: E731
    assert refusals(wrong, 20) == {Forbidden: 5, TooMuch: 15}
    assert slept == [3.0] * 15
    for address, name in (("here", "Di"), ("there", "Cy")):
        room.come_back(address, code, Newcomer(name, "1234"))
    assert len(slept) == 15
    room.come_back("here", code, Newcomer("Cy", "1234"))
    assert len(slept) == 16


def test_a_flood_of_wrong_pins_is_evaluated_one_by_one_and_takes_few_threads(room, seat):
    code, released = room.folder.settings.code, threading.Event()
    room.door._sleep = lambda seconds: released.wait(20)
    for n in range(6):
        room.join("here", code, [Newcomer(f"Cy {n}", "1234")])
        for _ in range(5):
            room.door._wrong_pins.count((f"cy {n}", "here"))
    refused = []

    def guess(n):
        with pytest.raises(TooMuch) as caught:
            room.come_back("here", code, Newcomer(f"Cy {n % 6}", f"{n:04}"))
        refused.append(str(caught.value))

    threads = [threading.Thread(target=guess, args=(n,)) for n in range(60)]
    for each in threads:
        each.start()
    until(lambda: len(refused) == 20)
    assert sum(each.is_alive() for each in threads) == 40
    released.set()
    for each in threads:
        each.join()
    assert sum("too many tries at once" in each for each in refused) == 20
    room.come_back("here", code, Newcomer("Cy 0", "1234"))
    assert not room.door._lines._lines
    assert not room.door._lines._slow


@pytest.mark.parametrize(
    ("guessers", "pin"),
    [(6, "{0:02}{1:06}"), (20, "{0:02}{1:06}"), (60, "0000"), (20, "0{0:03}")],
    ids=["few", "many", "one wrong PIN", "a PIN of its own for each"],
)
def test_the_right_pin_is_taken_during_a_flood_of_wrong_ones(room, seat, guessers, pin):
    code, over, wrong = room.folder.settings.code, threading.Event(), []
    room.door._sleep = lambda seconds: time.sleep(0.01)
    room.join("here", code, [Newcomer("Cy", "1234")])
    for n in range(5):
        with pytest.raises(Forbidden):
            room.come_back("here", code, Newcomer("Cy", f"000{n}"))

    def guess(k):
        while not over.is_set():
            with pytest.raises((Forbidden, TooMuch)):
                room.come_back("here", code, Newcomer("Cy", pin.format(k, len(wrong))))
            wrong.append(k)

    threads = [threading.Thread(target=guess, args=(k,)) for k in range(guessers)]
    for each in threads:
        each.start()
    try:
        until(lambda: len({*wrong}) == guessers)
        for _ in range(3):
            room.come_back("here", code, Newcomer("Cy", "1234"))
    finally:
        over.set()
        for each in threads:
            each.join()


def test_a_new_pin_is_taken_during_any_flood(room, seat):
    """Nobody can guess it, so no try has to wait: neither the right one nor a wrong one."""
    code, slept = room.folder.settings.code, []
    room.door._sleep = slept.append
    _, pin = room.readmit(seat)
    assert sum(each.isdigit() for each in pin) == 12
    wrong = lambda n: room.come_back("here", code, Newcomer("Ada", f"{n:012}"))  # noqa: E731
    assert refusals(wrong, 300) == {Forbidden: 300}
    for typed in (pin, pin.replace(" ", ""), f" {pin} "):
        room.come_back("here", code, Newcomer("Ada", typed))
    assert slept == []


def until(condition):
    ends = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_freed_seat_is_empty_for_its_people_and_stays_in_the_grades(
    room, class_folder, finished_run, clock
):
    code = room.folder.settings.code
    first, cookie = room.join("here", code, [Newcomer("Ada", "1234")])
    empty, _ = room.join("here", code, [Newcomer("Bo")])
    for each in (first, empty):
        room.open(each, "small")
    room.answer(at("guess"), 12)
    finish(room, room.request_run(at("both"), {}, NO_CHECK), finished_run)
    waiting = room.request_run(at("both"), {}, NO_CHECK)
    for each in (first, empty):
        room.free(each)
    assert (waiting.status, room.queue.waiting) == ("interrupted", 0)
    assert room.seat_of(cookie) is None
    for refused in (
        lambda: room.answer(at("guess"), 13),
        lambda: room.request_run(at("both"), {}, NO_CHECK),
        lambda: room.open(empty, "small"),
        lambda: room.readmit(first),
        lambda: room.free(first),
    ):
        with pytest.raises(NotNow, match="was freed"):
            refused()
    with pytest.raises(Forbidden):
        room.come_back("here", code, Newcomer("Ada", "1234"))
    rows = views.grid(room.lesson, room.queue, (), Load(0, 2, 0), clock.now)["seats"]
    assert [(each["seat"], each["left"]) for each in rows] == [(first, True)]
    handed_in = grades.submissions(room.folder, room.state)
    assert [(each.seat, each.points) for each in handed_in] == [(first, 1)]
    assert room.join("here", code, [Newcomer("Ada")])[0] == "s3"
    again = Room(class_folder, clock)
    assert vars(again.state) == vars(room.state)
    again.close()


def test_a_run_of_a_freed_seat_ends_as_any_other(room, seat, finished_run):
    room.answer(at("guess"), 12)
    run = room.request_run(at("both"), {}, NO_CHECK)
    assert room.take_next(Load(0, 2, 0)) is run
    room.free(seat)
    finish(room, run, finished_run)
    assert run.status == "complete"


def test_a_class_full_of_nobody_is_emptied_at_once(room, seat):
    code = room.folder.settings.code
    room.answer(at("guess"), 12)
    for n in range(199):
        room.join(f"place {n // 60}", code, [Newcomer(f"nobody {n}")])
    for address in ("place 0", "another place"):
        with pytest.raises(TooMuch):
            room.join(address, code, [Newcomer("Bo")])
    assert len(room.free_empty()) == 199
    assert room.join("place 0", code, [Newcomer("nobody 7")])[0] == "s201"
    assert [each.id for each in room.state.listed()] == [seat, "s201"]


def test_a_student_comes_back_with_a_pin(room, seat):
    code = room.folder.settings.code
    second, _ = room.join("here", code, [Newcomer("Cy", "1234")])
    assert room.seat_of(room.come_back("there", code, Newcomer("cy", "1234"))[1]) == second
    with pytest.raises(Forbidden):  # without a PIN only the instructor can help
        room.come_back("there", code, Newcomer("Ada", ""))
    with pytest.raises(Forbidden, match="code is wrong"):  # the PIN alone is not enough
        room.come_back("there", "AAAAAA", Newcomer("cy", "1234"))
    name, pin = room.readmit(seat)
    assert name == "Ada"
    assert room.seat_of(room.come_back("there", code, Newcomer("Ada", pin))[1]) == seat


def test_times_are_those_of_the_clock(clock: Clock, room, seat):
    clock.now += 60
    assert room.lesson.left_s(seat, "small", clock()) == pytest.approx(1140)


def test_only_the_seats_that_change_are_told(room, seat):
    other, _ = room.join("here", room.folder.settings.code, [Newcomer("Bo")])
    shown = (seat, other, None)

    def changed(act):
        before = [room.news.wait(each, -1, 0) for each in shown]
        act()
        return [room.news.wait(each, -1, 0) != old for each, old in zip(shown, before, strict=True)]

    assert changed(lambda: room.answer(at("guess"), 12)) == [True, False, True]
    assert changed(lambda: room.extend("small", other, 5)) == [False, True, True]
    assert changed(lambda: room.freeze(True)) == [True, True, True]
    assert changed(lambda: room.freeze(False)) == [True, True, True]
    assert changed(lambda: None) == [False, False, False]
    room.open(other, "small")
    room.answer(at("guess", other), 12)
    runs = [room.request_run(at("both", each), {}, NO_CHECK) for each in (seat, other)]
    assert changed(lambda: room.withdraw(runs[0])) == [True, True, True]  # the other one moves up


def test_a_seat_has_somebody_and_at_most_thirty_people(room):
    code, people = room.folder.settings.code, [Newcomer(f"Student {n}") for n in range(31)]
    for wrong in (people, []):
        with pytest.raises(RequestError, match="1 to 30 people"):
            room.join("here", code, wrong)
    room.join("here", code, people[:30])


def test_a_stopped_class_changes_no_run_of_a_student(room, seat, clock):
    room.answer(at("guess"), 12)
    run = room.request_run(at("both"), {}, NO_CHECK)
    room.freeze(True)
    with pytest.raises(NotNow, match="stopped the class"):
        rules.flipped(room.lesson, run, "link.path1.loss", 0, "s1", clock.now)
    assert rules.flipped(room.lesson, run, "link.path1.loss", 0, None, clock.now)


@pytest.mark.parametrize("what", [("r", None, None), (None, "x", None), (None, "small", "x")])
def test_only_what_is_there_is_shown_to_all(room, what):
    with pytest.raises(Unknown):
        room.point_at(*what)
    assert views.pointed_at(room.lesson) is None


def test_the_space_of_a_seat_is_that_of_the_files_of_its_runs(
    room, seat, finished_run, monkeypatch
):
    room.answer(at("guess"), 12)
    run = room.request_run(at("both"), {}, NO_CHECK)
    finish(room, run, finished_run)
    used = sum(each.stat().st_size for each in finished_run.rglob("*") if each.is_file())
    monkeypatch.setattr(rules, "MOST_BYTES", used - 1)
    with pytest.raises(TooMuch, match="fill the space"):
        room.request_run(at("both"), {}, NO_CHECK)
    monkeypatch.setattr(rules, "MOST_BYTES", used)
    room.request_run(at("both"), {}, NO_CHECK)


def test_seats_with_a_waiting_run_are_told_when_another_run_has_ended(room, seat, finished_run):
    room.answer(at("guess"), 12)
    other, _ = room.join("here", room.folder.settings.code, [Newcomer("Bo")])
    room.open(other, "small")
    room.answer(at("guess", other), 12)
    first = room.request_run(at("both"), {}, NO_CHECK)
    room.request_run(at("both", other), {}, NO_CHECK)
    before = room.news.wait(other, -1, 0)
    room.ended(first, "interrupted", "")
    assert room.news.wait(other, before, 0) != before


@pytest.mark.parametrize("running", [True, False])
def test_seats_are_told_when_a_restarted_server_goes_on_with_a_run(room, seat, running):
    room.answer(at("guess"), 12)
    run = room.request_run(at("both"), {}, NO_CHECK)
    before = room.news.wait(seat, -1, 0)
    room.resume(run, running)
    assert room.news.wait(seat, before, 0) != before
    assert run.status == ("running" if running else "waiting")
