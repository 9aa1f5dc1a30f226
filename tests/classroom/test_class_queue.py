"""The fair queue of a class, and the load of the machine that limits it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lab.batch.request import Request
from lab.classroom.queue import BUSY, LEAST_FREE_BYTES, Entry, Load, LoadMeter, Queue
from lab.classroom.queue import longest_s as longest_s_of

IDLE = Load(0.1, 2, 2**33)
FULL = Load(1.0, 2, 2**33)


def queue_of(*seats):
    queue = Queue()
    for n, seat in enumerate(seats):
        queue.add(Entry(f"{seat}-{n}", seat, "sim"))
    return queue


def started(queue, load=IDLE):
    """Seats of the runs that start while none ends."""
    found = []
    while entry := queue.next(load):
        found.append(entry.seat)
    return found


def test_seats_take_turns_and_run_one_at_a_time():
    queue = queue_of("a", "a", "a", "b", "c")
    assert [entry.seat for entry in queue.order()] == ["a", "b", "c", "a", "a"]
    assert started(queue) == ["a", "b", "c"]
    assert [queue.place(run) for run in ("a-1", "a-2", "b-3")] == [1, 2, None]
    queue.remove("a-0")
    queue.add(Entry("b-9", "b", "sim"))
    queue.remove("b-3")
    assert started(queue) == ["a", "b"]  # a's last start is longer ago
    queue.remove("a-1")
    assert started(queue) == ["a"]


def test_a_seat_that_asks_often_does_not_delay_others():
    queue = queue_of("a", "a", "a")
    assert queue.next(FULL).seat == "a"
    queue.add(Entry("b-0", "b", "sim"))
    queue.remove("a-0")
    assert queue.next(FULL).seat == "b"


def test_the_load_decides_but_the_queue_never_stands():
    queue = queue_of(*"abcdef")
    assert started(queue, FULL) == ["a", "b"]  # as many as there are processors
    assert queue.next(Load(BUSY, 2, 2**33)) is None
    assert queue.next(Load(0.1, 2, LEAST_FREE_BYTES)) is None
    assert started(queue) == ["c", "d", "e", "f"]


def test_emulations_run_one_at_a_time_beside_simulations():
    queue = queue_of(*"abc")
    for n in (1, 2):
        queue.add(Entry(f"class-{n}", None, "mininet"))
    assert queue.place("class-2") == 2
    assert sorted(map(str, started(queue, FULL))) == ["None", "a", "b"]
    queue.remove("class-1")
    assert queue.next(FULL).run == "class-2"


@given(
    wishes=some.lists(some.sampled_from("abcd"), max_size=30),
    ends=some.lists(some.integers(0, 3), max_size=60),
)
def test_every_run_starts_once_and_the_seat_that_waited_longest_is_next(wishes, ends):
    queue, order, running, last = queue_of(*wishes), [], [], {}
    for n in [*ends, *[0] * 60]:
        while entry := queue.next(FULL):
            may = {each.seat for each in queue.order()} - {each.seat for each in running}
            assert all(last.get(entry.seat, 0) <= last.get(each, 0) for each in may)
            assert entry.seat not in [each.seat for each in running]
            running.append(entry)
            order.append(entry)
            last[entry.seat] = len(order)
        if running:
            queue.remove(running.pop(n % len(running)).run)
    assert sorted(each.run for each in order) == sorted(
        f"{seat}-{n}" for n, seat in enumerate(wishes)
    )


def test_the_load_is_read_from_the_kernel(tmp_path):
    (tmp_path / "stat").write_text("cpu 10 0 10 80 0 0 0 0\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    1000 kB\n")
    meter = LoadMeter(tmp_path)
    (tmp_path / "stat").write_text("cpu 40 0 10 150 0 0 0 0\n")
    meter._at -= 10
    load = meter.read()
    assert load.busy == 0.3
    assert load.free_bytes == 1_024_000
    (tmp_path / "stat").unlink()
    assert 0 <= LoadMeter(tmp_path).read().busy <= 1


@pytest.mark.parametrize(
    ("speed", "vm", "longest_s"),
    [
        ("2", False, 20 / 2 * 3 + 60),
        (None, False, 20 * 3 + 60),  # in real time
        (None, True, 20 * 3 + 60 + 600),
    ],
)
def test_a_run_may_take_three_times_its_planned_time_and_a_minute(speed, vm, longest_s):
    request = Request("two_paths", "sim", duration_s=20, speed=speed, vm=vm)
    assert longest_s_of(request, 2.0) == longest_s
