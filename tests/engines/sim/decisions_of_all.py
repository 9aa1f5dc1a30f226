"""As a program: print the decisions of every strategy on some scenarios, with reasons, as JSON
lines."""

from __future__ import annotations

import json
import sys

from controller.strategies import STRATEGIES
from lab.errors import RequestError
from lab.scenario import loading
from lab.scenario.loading import Overrides

from .conftest import Simulation

SCENARIOS = {"campus": 3.5, "thirty_users": 0.5}


def main(*scenarios: str) -> None:
    for name in scenarios:
        for strategy in STRATEGIES:
            try:
                loaded = loading.load(name, Overrides(strategy))
            except RequestError:
                continue  # the strategy can never act there
            run = Simulation(loaded)
            run.run(SCENARIOS[name])
            for event in run.notes.events:
                print(json.dumps([name, strategy, event]))


if __name__ == "__main__":
    main(*(sys.argv[1:] or SCENARIOS))
