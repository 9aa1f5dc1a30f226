"""List the cases that `./run_lab.sh crosscheck all` runs: scenarios, each with its strategies.

Each scenario is run with the strategy `none` and with its own strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lab.errors import RequestError, unknown
from lab.evaluation.paired_runs import Experiment
from lab.scenario import loading

PLAIN = "none"
OWN = {  # the strategies of scenarios whose files say `none`; other such scenarios have none
    "campus": "expected_throughput",
    "collision_between": "expected_throughput",
    "collision_within": "expected_throughput",
    "fat_tree": "expected_throughput",
    "pooling": "expected_throughput",
    "testbed_wifi_lte": "meter_throttling",
    "thirty_users": "meter_throttling",
}
# Rate scales of scenarios whose files are too small at their `slow_machine_rate_scale`: a file of
# one connection would have 31 to 105 segments, of which the initial windows of its two subflows are
# 20. The results would depend on the first retransmission timeouts, and not on what the scenario
# compares. 20 s are enough for all files. Without KVM the VM needs clocks that are 4 times slower.
RATE_SCALES = {"rat_setup_1": 0.2, "rat_setup_2": 0.12, "rat_setup_3": 0.2}
FILES_S = 20.0


@dataclass(frozen=True)
class Case:
    """Describe one scenario with one strategy. `experiment` says how it is run."""

    scenario: str
    strategy: str

    @property
    def experiment(self) -> Experiment:
        """Return the scenario, strategy and settings of this case's runs.

        If the strategy is the one that the scenario file names, it keeps the parameters of the
        file.
        """
        name = f"{self.scenario}/{self.strategy}"
        if self.scenario not in RATE_SCALES:
            return Experiment(name, self.scenario, self.strategy)
        scale = f"rate_scale={RATE_SCALES[self.scenario]}"
        return Experiment(name, self.scenario, self.strategy, (scale,), duration_s=FILES_S)


def cases(scenarios: Sequence[str] = ()) -> list[Case]:
    """Return the cases of the named scenarios, or of all scenarios of the lab if no name is given.

    A name that is given twice counts once. Raise `RequestError` for an unknown scenario.
    """
    known = loading.names()
    for name in scenarios:
        if name not in known:
            raise RequestError(f"crosscheck: scenario {unknown(name, known)}")
    return [case for name in dict.fromkeys(scenarios or known) for case in _cases_of(name)]


def _cases_of(scenario: str) -> Iterator[Case]:
    yield Case(scenario, PLAIN)
    own = loading.load(scenario).strategy.name
    own = OWN.get(scenario, PLAIN) if own == PLAIN else own
    if own != PLAIN:
        yield Case(scenario, own)
