"""Events are handled in the order of their times; equal times in the order of scheduling."""

from hypothesis import given
from hypothesis import strategies as st

from lab.engines.sim import network
from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.tables import Tables
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

EMPTY = Topology(
    "empty", (Node("s1", "switch"), Node("srv1", "server")), (Link("server", "s1", "srv1"),)
)


@given(st.lists(st.integers(0, 20), max_size=60))
def test_events_are_popped_in_the_order_of_time_then_of_scheduling(times):
    w = network.build(Tables(EMPTY, Multipath(), 1))
    for number, at_ns in enumerate(times):
        events.schedule(w.row, at_ns, at.ARRIVAL, number)
    popped = [int(events.pop(w.row)) // at.EVENT_KINDS for _ in times]
    assert popped == sorted(range(len(times)), key=lambda number: (times[number], number))


def test_a_postponed_timer_expires_once_at_its_last_time():
    """A postponed timer keeps its first event in the heap; a stopped one does not expire."""
    row = network.build(Tables(EMPTY, Multipath(), 1)).row
    timer = len(row) - 2  # indices that belong to no row
    events.start_timer(row, timer, 10, at.RTO_DUE, 0)
    events.start_timer(row, timer, 30, at.RTO_DUE, 0)
    assert (int(events.next_ns(row)), int(events.pop(row))) == (10, at.RTO_DUE)
    assert not events.timer_has_expired(row, timer, 10, at.RTO_DUE, 0)
    assert (int(events.next_ns(row)), int(events.pop(row))) == (30, at.RTO_DUE)
    assert events.timer_has_expired(row, timer, 30, at.RTO_DUE, 0)
    assert events.next_ns(row) == at.FOREVER
    events.start_timer(row, timer, 40, at.RTO_DUE, 0)
    row[timer] = 0
    assert not events.timer_has_expired(row, timer, 40, at.RTO_DUE, 0)
