"""A law in a user's own file runs like a built-in one, interpreted and compiled."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from law_table import laws_kept

from lab.engines.sim import compiled, user_laws
from lab.engines.sim.core import congestion, dispatch
from lab.engines.sim.core import layout as at
from lab.errors import RequestError
from lab.run.manifest import ROOT

from .networks import chain, started
from .rows import places

SCALABLE = '''"""Scalable TCP (Kelly, CCR 33(2), 2003)."""

from __future__ import annotations

from lab.engines.sim.core import layout as at
from lab.engines.sim.core.jit import jit

INCREASE = 0.01


@jit
def on_ack(w: at.World, f: int, acked: int, now_ns: int) -> None:
    w.window[f + at.CWND] += INCREASE * acked


def reduced(cwnd: float) -> float:
    return max(0.875 * cwnd, 2.0)


def on_loss(w: at.World, f: int, now_ns: int) -> None:
    w.window[f + at.SSTHRESH] = reduced(w.window[f + at.CWND])
    w.window[f + at.CWND] = w.window[f + at.SSTHRESH]
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
    w, f = network.w, places(network)[1]
    w.row[f + at.LAW] = dispatch.number(law)
    w.window[f + at.CWND], w.window[f + at.SSTHRESH] = 10.0, 1.0
    congestion.on_ack(w, f, 2, 0)
    grown = w.window[f + at.CWND]
    congestion.on_loss(w, f, 0)
    return [float(grown), float(w.window[f + at.CWND])]


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
        "from lab.engines.sim.core.laws.siblings import siblings\n"
        "def on_ack(w, f, acked, now_ns):\n"
        "    for r in siblings(w, f):\n"
        "        w.window[r] += acked\n"
    )
    user_laws.register(path)
    assert windows("coupled") == pytest.approx([12, 6])


def test_a_division_by_zero_in_a_law_is_an_error_compiled_and_interpreted(tmp_path):
    numba = pytest.importorskip("numba")
    path = tmp_path / "divides.py"
    path.write_text("def on_ack(w, f, acked, now_ns):\n    return acked // w\n")
    user_laws.register(path)
    on_ack = dispatch.LAWS["divides"].on_ack
    for law in (on_ack, numba.njit(**compiled.options(on_ack) | {"cache": False})(on_ack)):
        with pytest.raises(ZeroDivisionError):
            law(0, 1, 1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def on_loss(w, f, now_ns): pass", "no function on_ack"),
        ("def on_ack(w, f): pass", r"on_ack must take \(w, f, acked, now_ns\)"),
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
print(compiled.is_fast(), list(map(int, network.w.row)), list(map(float, network.w.window)))
"""


@pytest.mark.whole
def test_a_users_law_gives_the_same_bytes_interpreted_and_compiled(scalable, tmp_path):
    """Equal table entries after ten seconds with losses. The compiler's cache is named after the
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
