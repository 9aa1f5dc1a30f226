"""`bench --against DIR`: what is refused before anything is compiled, how work and speed are
compared, and one comparison with a real clone of htsim."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.against import htsim, lab_side, measure
from bench.against.measure import ACKS, CASES, LAB, Case, Work
from lab import sudo
from lab.cli.commands import cli
from lab.engines.sim import code_cache
from lab.errors import LabError

TREE = CASES[0]
FAKE_COMPILER = """#!/bin/sh
[ "$1" = --version ] && { echo "g++ of the test"; exit 0; }
echo compiled >>"$0.log"
while [ "$1" != -o ]; do shift; done
echo program >"$2"
"""


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A folder that looks like the clone that is wanted."""
    folder = tmp_path / "clone"
    (folder / "sim").mkdir(parents=True)
    for name in (*htsim.SOURCES, "tcp.h"):
        (folder / "sim" / name).write_text(f"// {name}\n")
    monkeypatch.setattr(htsim, "SOURCES_SHA256", htsim.digest(folder / "sim"))
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A folder that is the whole PATH, with a g++ that takes any source."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "g++").write_text(FAKE_COMPILER)
    (folder / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def bench(*argv):
    return CliRunner().invoke(cli, ["bench", "--against", *map(str, argv)])


def empty(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def git_folder(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", str(folder / "bare")], check=True)
    return folder / "bare"


def its_sources(folder: Path) -> Path:
    return folder / "clone" / "sim"


def edited(folder: Path) -> Path:
    (folder / "clone" / "sim" / "tcp.h").write_text("// something else\n")
    return folder / "clone"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda folder: folder / "nowhere", "there is no such folder. Try: git clone https://"),
        (empty, "no clone of htsim, sim/config.cpp is missing. Try: git clone https://"),
        (git_folder, "a git folder without files. Try: git clone "),
        (its_sources, "give the folder above"),
        (edited, "is not that of commit 841d9e7b"),
    ],
)
@pytest.mark.usefixtures("clone")
def test_a_wrong_folder_is_refused_with_what_to_type(given, said, tmp_path, compiler):
    done = bench(given(tmp_path))
    assert done.exit_code == 2, done.output
    assert said in done.stderr
    assert not (compiler / "g++.log").exists()


def test_an_unknown_network_is_refused_before_anything_is_compiled(clone, compiler):
    done = bench(clone, "--only", "fat_tree")
    assert done.exit_code == 2
    assert all(each.name in done.stderr for each in CASES)
    assert not (compiler / "g++.log").exists()


def test_without_a_compiler_it_says_what_to_install(clone, tmp_path, monkeypatch):
    monkeypatch.setattr(code_cache, "is_wanted", lambda: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = bench(clone)
    assert done.exit_code == 3
    assert "Try: sudo apt install g++" in done.stderr


def test_an_interpreted_simulator_is_not_compared(clone, compiler, monkeypatch):
    monkeypatch.setattr(code_cache, "is_wanted", lambda: False)
    done = bench(clone)
    assert done.exit_code == 3
    assert "Try: ./run_lab.sh fast" in done.stderr
    assert not (compiler / "g++.log").exists()


def test_htsim_is_compiled_once_and_outside_of_its_folder(clone, compiler):
    before = sorted(clone.rglob("*"))
    program = htsim.program(clone)
    assert program.read_text() == "program\n"
    assert program.is_relative_to(sudo.user_cache())
    assert htsim.program(clone) == program
    assert (compiler / "g++.log").read_text().splitlines() == ["compiled"]
    assert sorted(clone.rglob("*")) == before


def test_the_end_of_what_the_compiler_said_is_in_the_error(clone, compiler):
    (compiler / "g++").write_text("#!/bin/sh\necho 'tcp.cpp:1: no such thing' >&2\nexit 1\n")
    with pytest.raises(LabError, match=r"(?s)g\+\+ failed:.*tcp\.cpp:1: no such thing"):
        htsim.program(clone)
    assert not list(sudo.user_cache().rglob("replay"))


# What is simulated


def test_htsim_gets_the_shared_link_of_the_dumbbell_and_no_other_hop():
    (dumbbell,) = (each for each in CASES if each.name == "dumbbell")
    assert measure.words(dumbbell, "second").splitlines() == [
        "second 1514 30 200",
        "2",  # both directions of the link
        "100000000 20000000 100",
        "100000000 20000000 100",
        "2",  # connections
        *("uncoupled 2", *["1 0", "1 1"] * 2),
        *("uncoupled 1", "1 0", "1 1"),
    ]


def test_linked_increases_are_coupled_in_htsim():
    (coupled,) = (each for each in CASES if each.name == "fat_tree_k4_4_subflows")
    assert measure.words(coupled, "each").count("coupled 4") == 8


def test_acknowledgements_go_back_over_the_hops_of_their_data_in_reverse():
    lines = measure.words(TREE, "each").splitlines()
    hops = int(lines[1])
    assert len(lines[hops + 3 :]) == 8 * (1 + 2 * 2)  # connections, with two subflows each
    scenario = lab_side.load(TREE.scenario, 1, TREE.settings)
    with lab_side.opened(scenario) as engine:
        engine.run_until(1)
        network, found = engine.network, lab_side.counts(engine.network)
        for each in network.subflows():
            data, back = map(lab_side.shaped_hops, (each.record.data_route, each.record.ack_route))
            assert len(data) == len(back) == 6
            assert [_link(network, hop) for hop in back] == [_link(network, hop) for hop in data][
                ::-1
            ]
            assert not set(data) & set(back)
    assert found["packets"] > 1000
    assert found["hops"] == 6 * (found["packets"] + found["acks"])


def _link(network, hop):
    (found,) = (link for (link, _), each in network.tables.links.items() if each == hop)
    return found


# How it is compared


def test_the_output_of_both_sides_is_one_json_object_in_the_last_line():
    line = '{"packets": 20, "acks": 10, "hops": 30, "start_s": 0.5, "run_s": 2}'
    assert measure.parse(f"At 3 RTO\n{line}\n") == Work(20, 10, 30, 0.5, 2)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "expected one JSON object"),
        ("At 3 RTO\n", "expected one JSON object"),
        ('{"packets": 20}', "expected one JSON object"),
        ('{"packets": 0, "acks": 0, "hops": 0, "start_s": 1, "run_s": 1}', "nothing was simulated"),
        ('{"packets": 9, "acks": 0, "hops": 9, "start_s": 1, "run_s": 0}', "nothing was simulated"),
    ],
)
def test_other_output_is_an_error(output, said):
    with pytest.raises(LabError, match=said):
        measure.parse(output)


def pair(ours_s, theirs_s, packets=1000, hops=9000):
    """Work of the lab and of htsim; `packets` and `hops` are htsim's."""
    return Work(1000, 500, 9000, 1.0, ours_s), Work(packets, 500, hops, 0.1, theirs_s)


def test_the_ratio_is_above_one_if_the_lab_needs_less_time():
    found = measure.compared(
        "second", [pair(2, 3), pair(1, 1.5), pair(4, 6), pair(2, 3), pair(6, 9)]
    )
    assert (found.ratio, found.low, found.high) == pytest.approx((1.5, 1.5, 1.5))
    assert (found.lab_s, found.htsim_s) == (3, 4.5)
    assert (found.lab_start_s, found.htsim_start_s) == pytest.approx((1.0, 0.1))


def test_the_interval_holds_the_ratio_and_widens_with_the_rounds():
    calm = measure.compared("second", [pair(1, each) for each in (1.49, 1.5, 1.51, 1.5, 1.5, 1.5)])
    wild = measure.compared("second", [pair(1, each) for each in (0.9, 1.5, 2.5, 1.5, 1.2, 1.9)])
    assert calm.low < calm.ratio < calm.high
    assert wild.low < wild.ratio < wild.high
    assert wild.high - wild.low > 10 * (calm.high - calm.low)


def test_few_rounds_give_no_interval():
    found = measure.compared("second", [pair(1, 2)])
    assert (found.low, found.high) == (None, None)
    assert found.to_json()["low"] is None
    assert " - " in (printed := measure.table([(TREE, [found])]))
    assert printed.endswith("at most 1.0 s in the lab and 0.1 s in htsim")


@pytest.mark.parametrize(
    ("packets", "hops", "said"),
    [
        (1000, 9000, ""),
        (1090, 9900, ""),
        (800, 9000, "not equal work: 1.25 x the packets"),
        (1250, 9000, "not equal work: 0.80 x the packets"),
        (1000, 12000, "not equal work: 0.75 x the hops"),
    ],
)
def test_work_that_differs_by_more_than_a_tenth_is_named(packets, hops, said):
    found = measure.compared("each", [pair(1, 1, packets, hops)])
    assert found.unequal == said
    assert found.to_json()["equal_work"] == (not said)
    assert (said or "fat_tree_k4") in measure.table([(TREE, [found])])


def test_faster_counts_packets_and_not_only_seconds():
    found = measure.compared("second", [pair(1, 1, packets=950)])
    assert found.ratio == pytest.approx(1000 / 950)


def test_every_second_round_is_in_the_opposite_order():
    order = []
    run = {name: lambda name=name: order.append(name) for name in "abc"}
    assert [list(each) for each in measure.rounds(run, 3)] == [
        ["a", "b", "c"],
        ["c", "b", "a"],
        ["a", "b", "c"],
    ]
    assert "".join(order) == "abccbaabc"


# With a real htsim


@pytest.fixture(scope="module")
def real():
    """The clone that MULTIPATH_LAB_HTSIM names, or csg-htsim beside other upstream sources in the
    cache."""
    named = os.environ.get("MULTIPATH_LAB_HTSIM") or sudo.user_cache() / "upstreams" / "csg-htsim"
    if not Path(named).is_dir():
        pytest.skip(
            f"NO CLONE OF HTSIM: {named}; set MULTIPATH_LAB_HTSIM to one ({htsim.UPSTREAM})"
        )
    return Path(named)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("acks", "per_packet", "hops_per_ack"), [("second", 0.5, 1), ("each", 1, 1), ("shipped", 1, 0)]
)
def test_one_subflow_fills_one_link_in_htsim(real, acks, per_packet, hops_per_ack):
    hop = "10000000 10000000 100"
    network = f"{acks} 1514 2 60 2 {hop} {hop} 1 uncoupled 1 1 0 1 1"
    found = measure.simulated([str(htsim.program(real))], network)
    assert found.packets == pytest.approx(60 * 10_000_000 / 1514 / 8, abs=1)
    assert found.acks == pytest.approx(per_packet * found.packets, rel=0.03)
    assert found.hops == found.packets + hops_per_ack * found.acks


@pytest.mark.whole
def test_a_fat_tree_is_equal_work_in_both_simulators(real, monkeypatch):
    if not code_cache.is_wanted():
        pytest.skip("NO NUMBA: ./run_lab.sh fast")
    monkeypatch.setattr(measure, "ROUNDS", 2)
    monkeypatch.setattr(measure, "CASES", (Case("short", "fat_tree", (), 5, 10),))
    done = bench(real)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout).values()
    assert list(found) == ["goal", *ACKS]
    assert found["second"]["equal_work"]
    assert not found["shipped"]["equal_work"]
    assert found["second"]["ratio"] > 0.2  # it is compiled
    assert LAB not in found
    assert "every 2nd, own route" in done.stderr
