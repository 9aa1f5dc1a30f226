"""Search random networks for harm, shrink the worst ones, and keep each as a scenario file."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path

from controller.strategy_names import folder_name
from lab.harm.networks import KINDS, Document, network
from lab.harm.rule import Harm
from lab.harm.shrinking import smaller_ones
from lab.harm.trial import Network, RunFailed, harm_or_none
from lab.scenario import yaml_text

MOST_SHOWN = 10  # worst networks, of all strategies together, which are also shrunk
SEARCHING = 0.5  # of the time; the rest is for shrinking


@dataclass(frozen=True)
class Asked:
    """What to search. `networks` or `minutes` may be infinite."""

    strategies: Sequence[str]
    seed: int
    minutes: float
    networks: float
    folder: Path
    record: Path | None = None


@dataclass
class Found:
    """A network on which a strategy does harm, and how small it is so far."""

    strategy: str
    number: int
    document: Document
    harm: Harm
    file: Path
    is_smallest: bool = False

    @property
    def size(self) -> str:
        """The number of users with traffic, flows and events, and the length, in words."""
        document = self.document
        counts = {
            "user": len({each["user"] for each in document["traffic"]}),
            "flow": len(document["traffic"]),
            "event": len(document["events"]),
        }
        parts = [f"{n} {word}{'s' * (n != 1)}" for word, n in counts.items()]
        return ", ".join([*parts, f"{document['duration_s']:g} s"])


@dataclass
class Search:
    """The state of a search; it is complete at any moment, so an interruption loses nothing."""

    asked: Asked
    say: Callable[[str], None]
    found: list[Found] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)
    failed: int = 0  # networks on which plain Multipath TCP could not be simulated

    def run(self) -> None:
        begin_s = time.monotonic()
        half_s = begin_s + 60 * self.asked.minutes * SEARCHING
        for number in self._numbers(half_s):
            self._try(number)
        for each in self.worst():
            self._shrink(each, begin_s + 60 * self.asked.minutes)

    def worst(self) -> list[Found]:
        """Return the networks with most harm, the worst first."""
        order = sorted(self.found, key=lambda each: (-each.harm.size, each.number, each.strategy))
        return order[:MOST_SHOWN]

    def _numbers(self, until_s: float) -> Iterator[int]:
        for number in count():
            if number >= self.asked.networks or time.monotonic() >= until_s:
                return
            yield number

    def _try(self, number: int) -> None:
        """Try all strategies on one network. They share its plain runs."""
        drawn = Network(network(self.asked.seed, number))
        for strategy in self.asked.strategies:
            if not drawn.fits(strategy):
                continue
            try:
                harm = drawn.harm_of(strategy)
            except RunFailed as error:
                self.failed += 1
                self.say(f"network {number}: plain Multipath TCP failed: {error}")
                return
            self.tried[strategy] += 1
            self._note(strategy, number, harm)
            if harm:
                name = f"{folder_name(strategy)}-{self.asked.seed}-{number}.yaml"
                found = Found(strategy, number, drawn.document, harm, self.asked.folder / name)
                self.found.append(found)
                self._keep(found)
                self.say(f"network {number}, {strategy}: {harm.text}")

    def _shrink(self, found: Found, until_s: float) -> None:
        def judge(document: Document) -> Harm | None:
            if time.monotonic() >= until_s:
                raise TimeoutError
            return harm_or_none(document, found.strategy)

        before = found.size
        try:
            for document, harm in smaller_ones(found.document, judge):
                found.document, found.harm = document, harm
                self._keep(found)
            found.is_smallest = True
            self._keep(found)
        except TimeoutError:
            pass
        self.say(f"network {found.number}, {found.strategy}: {before}, shrunk to {found.size}")
        self._note(found.strategy, found.number, found.harm, found)

    def _keep(self, found: Found) -> None:
        self.asked.folder.mkdir(parents=True, exist_ok=True)
        text = yaml_text.text_of(scenario_of(found, self.asked.seed))
        found.file.write_text(text, encoding="utf-8")

    def _note(
        self, strategy: str, number: int, harm: Harm | None, shrunk: Found | None = None
    ) -> None:
        if self.asked.record is None:
            return
        line = {
            "seed": self.asked.seed,
            "network": number,
            "kind": KINDS[number % len(KINDS)],
            "strategy": strategy,
            "harm": harm and {**asdict(harm), "text": harm.text},
            **({"file": str(shrunk.file), "smallest": shrunk.is_smallest} if shrunk else {}),
        }
        with self.asked.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def scenario_of(found: Found, seed: int) -> Document:
    """Return the scenario file of a found network, with seed and figures in its texts."""
    document = dict(found.document)
    state = "no simpler" if found.is_smallest else "perhaps a simpler"
    return {
        "name": document.pop("name"),
        "title": f"A random network on which {found.strategy} does harm",
        "question": "What does the strategy take from its users, and why?",
        "expect": f"With {found.strategy}, {found.harm.text}. Plain Multipath TCP is the strategy "
        f"none, with the same seed. From network {found.number} of seed {seed}; {state} form of it "
        "shows harm, too.",
        **{key: value for key, value in document.items() if key != "title"},
        "strategy": {"name": found.strategy},
    }


def unlimited(value: float | None) -> float:
    return math.inf if value is None else value
