"""Events happen in the order of their time, and of one moment in the order in which they were asked for."""

from hypothesis import given
from hypothesis import strategies as st

from lab.engines.sim.core import events
from lab.engines.sim.core import layout as at
from lab.engines.sim.tables import Tables
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology

EMPTY = Topology(
    "empty", (Node("s1", "switch"), Node("srv1", "server")), (Link("server", "s1", "srv1"),)
)


@given(st.lists(st.integers(0, 20), max_size=60))
def test_what_is_popped_is_sorted_and_stable(times):
    w = Tables(EMPTY, Multipath(), 1).world()
    for number, at_ns in enumerate(times):
        events.schedule(w.row, at_ns, at.ARRIVAL, number)
    popped = [int(events.pop(w.row)) // at.EVENT_KINDS for _ in times]
    assert popped == sorted(range(len(times)), key=lambda number: (times[number], number))
