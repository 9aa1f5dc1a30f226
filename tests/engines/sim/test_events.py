"""Events are handled in the order of their times; equal times in the order of scheduling."""

from hypothesis import given
from hypothesis import strategies as st

from lab.engines.sim import compiled, network
from lab.engines.sim.core import events
from lab.engines.sim.core import state as at
from lab.engines.sim.tables import Tables
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

EMPTY = Topology(
    "empty", (Node("s1", "switch"), Node("srv1", "server")), (Link("server", "s1", "srv1"),)
)


def tables_of_no_flow():
    tables = Tables(EMPTY, Multipath(), (), 1, compiled.records())
    network.add_room(tables, 64)
    return tables


def pop(w):
    e = w.heap[0].event
    events.remove_first(w)
    return e


@given(st.lists(st.integers(0, 20), max_size=60))
def test_events_are_handled_in_the_order_of_time_then_of_scheduling(times):
    tables = tables_of_no_flow()
    w = tables.w
    for number, at_ns in enumerate(times):
        events.schedule(w, at_ns, tables.make.one(at.Event, kind=at.PUSH, expires_ns=number))
    numbers = [pop(w).expires_ns for _ in times]
    assert numbers == sorted(range(len(times)), key=lambda number: (times[number], number))


def test_a_postponed_timer_expires_once_at_its_last_time():
    """A postponed timer keeps its first entry in the heap; a stopped one does not expire."""
    tables = tables_of_no_flow()
    w, timer = tables.w, tables.make.one(at.Event, kind=at.RTO_DUE)
    events.start_timer(w, timer, 10)
    events.start_timer(w, timer, 30)
    assert (events.next_ns(w), pop(w)) == (10, timer)
    assert not events.has_expired(w, timer, 10)
    assert (events.next_ns(w), pop(w)) == (30, timer)
    assert events.has_expired(w, timer, 30)
    assert events.next_ns(w) == at.FOREVER
    events.start_timer(w, timer, 40)
    timer.expires_ns = 0
    assert not events.has_expired(w, timer, 40)
