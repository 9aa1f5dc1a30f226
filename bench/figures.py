"""The figures of `./run_lab.sh bench`. Each is the median of several measurements, and its name
ends with its unit. S-MPTCP and DTMC are papers that the lab reproduces
(docs/notebook/reproduction).

    dumbbell_packets_per_s, fat_tree_packets_per_s
        data segments that the simulator carries per second of wall time
    thirty_users_60s_s
        duration of the command `run thirty_users --duration 60 --speed max`, with the
        compiled simulator in the cache
    batch_1_process_runs_per_s, batch_2_processes_runs_per_s, batch_2_workers_runs_per_s,
    batch_2_workers_lost_share
        runs of two_paths for 1 s per second of wall time, in processes of this machine and on a
        cluster of two workers; the share that the cluster makes fewer than two processes
    cold_start_s, warm_start_s
        time from the command `run` to the first sample of a run, with an empty and a full cache of
        compiled code
    compiled_after_s
        time from the command `run`, with an empty cache, until the simulator is compiled
    maxflow_k16_ms, maxflow_k32_ms
        computation of the largest flow between two hosts of a fat tree (S-MPTCP, Algorithm 1)
    reallocate_100_ms
        computation of new rates when the 100th connection arrives at a fat tree (S-MPTCP,
        Algorithm 3)
    arrival_k16_p99_ms, link_change_k16_ms
        one decision of the strategy `expected_throughput` in a fat tree with k = 16: when one of
        100 connections arrives (99th percentile), and when a link changes (longest of four)
    arrival_k16_max_min_p99_ms, link_change_k16_max_min_ms
        the same two figures with the strategy's parameter `allocation: max_min`
    forecast_15_paths_ms
        one greedy selection among fifteen paths (DTMC, Algorithm 1)
    viewers_40_p99_ms, viewers_40_cpu_share
        with ten samples a second: time from the write of a sample until the last of 40 viewers
        has received it, and the share of one processor that the dashboard's server uses
    class_30_page_p99_ms, class_30_answer_p99_ms, class_30_lost_requests, class_30_pss_mib,
    class_30_all_run_s
        a class of 30 students, each of whom watches a run in real time: how late a sample arrives,
        how long it takes to save an answer, failed requests, memory of the server with all runs,
        and the time until all runs had begun
    class_with_browsers_page_p99_ms, class_with_browsers_answer_p99_ms,
    class_with_browsers_lost_requests, class_with_browsers_pss_mib, class_with_browsers_all_run_s
        the same five figures if ten of the 30 students are real browsers; the first two are
        measured in these browsers: until a chart is drawn with a sample, and from a click until the
        page says that an answer is saved
    page_60_lines_cpu_share, page_60_lines_paints_per_s
        share of one processor that all processes of a browser use while the page of a running run
        shows more than 60 lines at two samples a second, and how often it paints them
    page_hour_heap_growth, page_hour_nodes_growth, page_hour_listeners_growth
        growth of the JavaScript heap, the DOM nodes and the event listeners of the page of a
        running run, from its 10th to its 60th minute; 0.1 is 10 %
    vm_first_sample_s
        time from the command `run --engine mininet --vm` to the first sample
    fat_tree_4_up_s, mn_same_size_up_s
        from the start of building a fat tree with k = 4 (20 switches, 16 hosts) in the VM until
        POX has connected to all switches and has installed their tables: built by the lab, and by
        `mn`
    testbed_up_s, stock_testbed_up_s
        the same time for the scenario testbed_wifi_lte: built by the lab, and by Mininet-WiFi
    emulated_mbps_per_processor
        throughput of a run of testbed_wifi_lte in the VM, per fully busy processor
    boots_without_panic, boots_with_panic
        boots of the VM, summed over docs/notebook/vm_boots.jsonl
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

from bench import batches, classes, emulation, page, runs, strategies
from lab.errors import RequestError, unknown


@dataclass(frozen=True)
class Measure:
    """A measurement that returns one or several figures, and is repeated `repeats` times.

    `once` measures, and returns a value for each name in `names`. `emulation` is True if the
    virtual machine is needed. `on_request` is True if the measurement is made only when its name is
    given.
    """

    names: tuple[str, ...]
    once: Callable[[], tuple[float, ...]]
    repeats: int = 5
    emulation: bool = False
    on_request: bool = False


def measure(name: str | None = None, emulation: bool = False) -> Iterator[tuple[str, float]]:
    """Measure all figures, or only those with the given name. Yield name and median of each figure.

    `name` is the name of one figure, or the first words of the names of several figures, such as
    class_30. If it is None, all figures are measured but two groups: figures that are measured only
    on request, and, unless `emulation` is True, figures of the emulation. Raises `RequestError` if
    no figure has this name.
    """
    known = [each for each in MEASURES if any(_is_meant(own, name) for own in each.names)]
    if not known:
        names = [name for each in MEASURES for name in each.names]
        raise RequestError(f"bench: figure {unknown(name, names)}")
    for each in known:
        if name is None and (each.on_request or (each.emulation and not emulation)):
            continue
        rows = [each.once() for _ in range(each.repeats)]
        for own, values in zip(each.names, zip(*rows, strict=True), strict=True):
            if _is_meant(own, name):
                yield own, median(values)


def _is_meant(figure: str, name: str | None) -> bool:
    return name is None or figure == name or figure.startswith(f"{name}_")


DUMBBELL = ("topology.rate_mbps=100", "traffic.1.cc=reno")
MEASURES = (
    Measure(("dumbbell_packets_per_s",), lambda: runs.packets_per_s("shared_pipe", *DUMBBELL)),
    Measure(("fat_tree_packets_per_s",), lambda: runs.packets_per_s("fat_tree")),
    Measure(
        ("thirty_users_60s_s",),
        lambda: runs.whole_run_s("thirty_users", "--duration", "60", "--speed", "max"),
        3,
    ),
    Measure(
        (
            "batch_1_process_runs_per_s",
            "batch_2_processes_runs_per_s",
            "batch_2_workers_runs_per_s",
            "batch_2_workers_lost_share",
        ),
        batches.runs_per_s,
        3,
        on_request=True,
    ),
    Measure(("cold_start_s", "warm_start_s", "compiled_after_s"), runs.starts, 3),
    Measure(("maxflow_k16_ms",), lambda: strategies.largest_flow(16), 3),
    Measure(("maxflow_k32_ms",), lambda: strategies.largest_flow(32), 3),
    Measure(("reallocate_100_ms",), strategies.reallocation, 3),
    Measure(
        ("arrival_k16_p99_ms", "link_change_k16_ms"),
        lambda: strategies.steps_in_a_large_tree("paper"),
        3,
    ),
    Measure(
        ("arrival_k16_max_min_p99_ms", "link_change_k16_max_min_ms"),
        lambda: strategies.steps_in_a_large_tree("max_min"),
        3,
    ),
    Measure(("forecast_15_paths_ms",), strategies.selection),
    Measure(("viewers_40_p99_ms", "viewers_40_cpu_share"), page.viewers, 3),
    Measure(
        (
            "class_30_page_p99_ms",
            "class_30_answer_p99_ms",
            "class_30_lost_requests",
            "class_30_pss_mib",
            "class_30_all_run_s",
        ),
        classes.class_of_30,
        1,
    ),
    Measure(
        (
            "class_with_browsers_page_p99_ms",
            "class_with_browsers_answer_p99_ms",
            "class_with_browsers_lost_requests",
            "class_with_browsers_pss_mib",
            "class_with_browsers_all_run_s",
        ),
        classes.class_with_browsers,
        1,
        on_request=True,
    ),
    Measure(("page_60_lines_cpu_share", "page_60_lines_paints_per_s"), page.many_lines, 1),
    Measure(
        ("page_hour_heap_growth", "page_hour_nodes_growth", "page_hour_listeners_growth"),
        page.hour,
        1,
        on_request=True,
    ),
    Measure(("vm_first_sample_s",), runs.vm_first_sample_s, 3, emulation=True),
    Measure(("fat_tree_4_up_s",), lambda: emulation.own_up_s(emulation.TREE), 3, emulation=True),
    Measure(("mn_same_size_up_s",), emulation.mn_up_s, 3, emulation=True),
    Measure(("testbed_up_s",), lambda: emulation.own_up_s(runs.DEMO), 3, emulation=True),
    Measure(("stock_testbed_up_s",), emulation.stock_up_s, 3, emulation=True),
    Measure(("emulated_mbps_per_processor",), runs.emulated_mbps_per_processor, 3, emulation=True),
    Measure(
        ("boots_without_panic", "boots_with_panic"),
        emulation.boots_without_panic,
        1,
        emulation=True,
    ),
)
