"""Every strategy runs on every scenario or is refused at the start, as the table in
scenarios/README.md says."""

from __future__ import annotations

import pytest

from controller.strategies import STRATEGIES
from controller.strategy_names import base_name
from lab.errors import RequestError
from lab.scenario import loading as scenario
from lab.scenario import schema
from lab.scenario.loading import FOLDER, Overrides
from lab.scenario.targets import check_flip, targets

from .conftest import Simulation

pytestmark = pytest.mark.whole

README = FOLDER / "README.md"
BEGIN, END = "<!-- begin: every strategy on every scenario -->\n", "<!-- end -->\n"
AFTER_END = "before its events at"  # events of a run that is cut short


def refusal(name: str, strategy: str) -> str | None:
    """Why a scenario refuses a strategy, without the file's name and the choices; None if it
    accepts."""
    try:
        scenario.load(name, Overrides(strategy=strategy))
    except RequestError as error:
        return str(error).partition("in this network: ")[2].partition(". Choose")[0]
    return None


PLAIN = [name for name in STRATEGIES if name == base_name(name)]
PAIRS = {
    (name, strategy): refusal(name, strategy) for name in scenario.names() for strategy in PLAIN
}


def table() -> str:
    """Cells are `yes`, or `no` and the number of a reason below the table."""
    reasons = list(dict.fromkeys(why for why in PAIRS.values() if why))
    lines = [f"| scenario | {' | '.join(PLAIN)} |", "|---" * (len(PLAIN) + 1) + "|"]
    for name in scenario.names():
        refusals = (PAIRS[name, strategy] for strategy in PLAIN)
        cells = (f"no ({reasons.index(why) + 1})" if why else "yes" for why in refusals)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(
        [*lines, "", *(f"({n}) {why[0].upper()}{why[1:]}." for n, why in enumerate(reasons, 1)), ""]
    )


def test_the_table_in_the_readme_is_up_to_date():
    """If the table is stale, this test rewrites it; check and commit it."""
    before = README.read_text()
    head, _, rest = before.partition(BEGIN)
    tail = rest.partition(END)[2]
    after = f"{head}{BEGIN}{table()}{END}{tail}"
    if after != before:
        README.write_text(after)
    assert after == before, f"{README} was stale and has been written anew: check it and commit it"


def test_most_pairs_run():
    assert sum(why is None for why in PAIRS.values()) > 0.8 * len(PAIRS)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        *(pair for pair, why in PAIRS.items() if why is None),
        *(("campus", strategy) for strategy in STRATEGIES if strategy not in PLAIN),
    ],
)
def test_a_strategy_runs_on_a_scenario_that_allows_it(name, strategy):
    run = Simulation(scenario.load(name, Overrides(strategy=strategy)))
    frames = run.run(2.5)
    is_rare = all(flow.kind == "workload" for flow in run.scenario.traffic)
    last = frames if is_rare else frames[-2:]  # data that is late may hold back all of one sample
    assert any(user["mbps"] for frame in last for user in frame["user"].values())
    assert all(AFTER_END in each["text"] for each in run.notes.events if each["kind"] == "warning")
    assert {each["strategy"] for each in run.notes.events if each["kind"] == "observation"} == {
        strategy
    }


def test_every_strategy_runs_on_campus():
    assert not any(PAIRS["campus", strategy] for strategy in PLAIN)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_parameter_has_a_unit_a_help_text_and_bounds_within_which_it_can_be_changed(strategy):
    running = scenario.load("campus", Overrides(strategy=strategy))
    flippable = targets(running)
    for row in schema.described_strategy(strategy):
        target = f"strategy.{row['name']}"
        assert row["unit"], target
        assert row["help"], target
        if row["choices"] or row["type"] == "boolean":
            allowed = row["choices"] or [True, False]
        else:
            assert row["maximum"] is not None, target
            assert flippable[target].minimum is not None, target
            allowed = [row["maximum"]]
        for value in allowed:
            assert check_flip(running, target, value) == value


def test_a_change_to_a_strategy_without_effect_is_refused():
    with pytest.raises(
        RequestError,
        match="'meter_throttling' has nothing to do in this network: it limits users at access",
    ):
        check_flip(scenario.load("pooling"), "strategy", "meter_throttling")
