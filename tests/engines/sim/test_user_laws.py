"""A law in a user's own file runs like a built-in one, interpreted and compiled."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from law_table import laws_kept

from lab.engines.sim import compiled, user_laws
from lab.engines.sim.core import congestion, dispatch
from lab.errors import RequestError
from lab.run.manifest import ROOT

from .networks import chain, started
from .rows import places

SCALABLE = '''"""Scalable TCP (Kelly, CCR 33(2), 2003)."""

from __future__ import annotations

from lab.engines.sim.core.jit import jit
from lab.engines.sim.core.state import Subflow

INCREASE = 0.01


@jit
def on_ack(s: Subflow, acked: int, now_ns: int) -> None:
    s.cwnd += INCREASE * acked


def reduced(cwnd: float) -> float:
    return max(0.875 * cwnd, 2.0)


def on_loss(s: Subflow, now_ns: int) -> None:
    s.ssthresh = reduced(s.cwnd)
    s.cwnd = s.ssthresh
'''


@pytest.fixture
def scalable(tmp_path):
    path = tmp_path / "scalable.py"
    path.write_text(SCALABLE)
    return path


@pytest.fixture(autouse=True)
def _built_in_laws_only():
    with laws_kept():
        yield


def windows(law):
    """Window after two acknowledged segments, and then after a loss; it begins with 10 segments."""
    network = started(chain(2))
    s = places(network)[1]
    s.law_number = dispatch.number(law)
    s.cwnd, s.ssthresh = 10.0, 1.0
    congestion.on_ack(s, 2, 0)
    grown = s.cwnd
    congestion.on_loss(s, 0)
    return [float(grown), float(s.cwnd)]


def test_a_registered_law_changes_the_window(scalable):
    assert user_laws.register(scalable) == "scalable"
    assert windows("scalable") == pytest.approx([10.02, 8.7675])
    assert windows("reno") == pytest.approx([10.2, 5.1])
    scalable.write_text(SCALABLE.replace("0.01\n", "0.03\n"))
    user_laws.register(scalable)
    assert windows("scalable") == pytest.approx([10.06, 8.8025])
    assert list(dispatch.LAWS)[-2:] == ["wvegas", "scalable"]


def test_a_law_without_on_loss_halves_like_reno(tmp_path):
    path = tmp_path / "greedy.py"
    path.write_text(SCALABLE.replace("INCREASE = 0.01", "INCREASE = 2.0").split("def reduced")[0])
    user_laws.register(path)
    assert windows("greedy") == pytest.approx([14, 7])


def test_a_law_can_use_functions_of_the_core(tmp_path):
    """Also in a process that runs compiled code, where numba is installed."""
    started(chain(2))
    path = tmp_path / "coupled.py"
    path.write_text(
        "from lab.engines.sim.core.laws.siblings import can_send\n"
        "def on_ack(s, acked, now_ns):\n"
        "    for k in range(s.connection.count):\n"
        "        r = s.connection.subflows[k]\n"
        "        r.cwnd += acked if can_send(r) else 0\n"
    )
    user_laws.register(path)
    assert windows("coupled") == pytest.approx([12, 6])


def test_a_division_by_zero_in_a_law_is_an_error_compiled_and_interpreted(tmp_path):
    numba = pytest.importorskip("numba")
    path = tmp_path / "divides.py"
    path.write_text("def on_ack(s, acked, now_ns):\n    return acked // now_ns\n")
    user_laws.register(path)
    on_ack = dispatch.LAWS["divides"].on_ack
    for law in (on_ack, numba.njit(**compiled.options(on_ack) | {"cache": False})(on_ack)):
        with pytest.raises(ZeroDivisionError):
            law(1, 1, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def on_loss(s, now_ns): pass", "no function on_ack"),
        ("def on_ack(s): pass", r"on_ack must take \(s, acked, now_ns\)"),
        ("def on_ack(w, f, acked, now_ns): pass", r"Write \(s, acked, now_ns\), and `s.cwnd` for"),
        ("import nothing_like_it", "No module named 'nothing_like_it'"),
        ("def on_ack(", "SyntaxError"),
    ],
)
def test_a_file_that_is_no_law_is_refused(tmp_path, text, message):
    path = tmp_path / "law.py"
    path.write_text(text)
    with pytest.raises(RequestError, match=message):
        user_laws.register(path)
    with pytest.raises(RequestError, match="No such file"):
        user_laws.register(tmp_path / "missing.py")
    (tmp_path / "reno.py").write_text(SCALABLE)
    with pytest.raises(RequestError, match="'reno' is built in"):
        user_laws.register(tmp_path / "reno.py")
    assert "law" not in dispatch.LAWS


RUN = """
import sys
from pathlib import Path
from lab.engines.sim import compiled, compiler, user_laws
from lab.engines.sim.core.state import Connection, LawState, Subflow, World
from lab.engines.sim.memory import NUMBERS
from lab.engines.sim.network import Network
from lab.scenario.flows import Flow
from lab.scenario.schema import Multipath
from lab.topologies.topology import Link, Node, Topology
name = user_laws.register(Path(sys.argv[1]))
compiler.wait()
nodes = (Node("ue1", "user", "l2"), Node("s1", "switch"), Node("srv1", "server"))
shape = {"rate_bps": 10_000_000, "delay_ns": 5_000_000, "queue_packets": 30, "loss_ppm": 1000}
links = (Link("l1", "s1", "srv1"), Link("l2", "s1", "ue1", **shape))
flow = Flow("ue1-1", "ue1", "down", "reno", None, None)
network = Network(Topology("one", nodes, links), Multipath(), [flow], seed=1)
network.start(flow, name)
network.run(10_000_000_000)
c, s = network.tables.connections["ue1-1"], next(network.subflows()).record
state = [
    [getattr(record, field) for field, kind in type_.__annotations__.items() if kind in NUMBERS]
    for record, type_ in ((network.w, World), (c, Connection), (s, Subflow), (s.law, LawState))
]
print(compiled.is_fast(), state)
"""


@pytest.mark.long
def test_a_users_law_gives_the_same_bytes_interpreted_and_compiled(scalable, tmp_path):
    """Equal records after ten seconds with losses. The compiler's cache is named after the
    law, too."""
    pytest.importorskip("numba")
    tables = {}
    for off in ("0", "1"):
        environment = os.environ | {
            "NUMBA_DISABLE_JIT": off,
            "MULTIPATH_LAB_CACHE": str(tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, "-c", RUN, scalable],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        fast, _, tables[off] = done.stdout.partition(" ")
        assert fast == str(off == "0")
    assert tables["0"] == tables["1"]
    assert len(list((tmp_path / "cache" / "sim").iterdir())) == 1
