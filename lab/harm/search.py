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
from typing import Any

from controller.strategy_names import folder_name
from lab import installed
from lab.harm.networks import KINDS, Document, network
from lab.harm.rule import Harm, harm_from
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
    _known: set[tuple[str, int]] = field(default_factory=set)  # of an earlier search
    _sources: str = field(default_factory=lambda: installed.sources_sha256()[:12])

    def run(self) -> None:
        begin_s = time.monotonic()
        self._resume()
        half_s = begin_s + 60 * self.asked.minutes * SEARCHING
        for number in self._numbers(half_s):
            self._try(number)
        for each in self.worst():
            self._shrink(each, begin_s + 60 * self.asked.minutes)

    def _resume(self) -> None:
        """Count what the record has of this seed and these sources, so that it is not tried again.
        Other sources may draw or judge a network differently."""
        if self.asked.record:
            _end_last_line(self.asked.record)
        for line in _lines(self.asked.record):
            strategy, number = line["strategy"], line["network"]
            key = strategy, number
            same = (line["seed"], line.get("sources")) == (self.asked.seed, self._sources)
            if not same or "file" in line or key in self._known:
                continue
            if strategy in self.asked.strategies and number < self.asked.networks:
                self._known.add(key)
                self.tried[strategy] += 1
                if line["harm"]:
                    self._find(strategy, number, harm_from(line["harm"]))

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
            if (strategy, number) in self._known or not drawn.fits(strategy):
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
                self._keep(self._find(strategy, number, harm))
                self.say(f"network {number}, {strategy}: {harm.text}")

    def _find(self, strategy: str, number: int, harm: Harm) -> Found:
        name = f"{folder_name(strategy)}-{self.asked.seed}-{number}.yaml"
        document = network(self.asked.seed, number)
        self.found.append(Found(strategy, number, document, harm, self.asked.folder / name))
        return self.found[-1]

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
            "sources": self._sources,
            "seed": self.asked.seed,
            "network": number,
            "kind": KINDS[number % len(KINDS)],
            "strategy": strategy,
            "harm": harm and {**asdict(harm), "text": harm.text},
            **({"file": str(shrunk.file), "smallest": shrunk.is_smallest} if shrunk else {}),
        }
        with self.asked.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _end_last_line(record: Path) -> None:
    """End a line that was cut off while it was written, so that the next one is a line again."""
    if record.exists() and record.read_bytes()[-1:] not in (b"", b"\n"):
        with record.open("a", encoding="utf-8") as file:
            file.write("\n")


def _lines(record: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the lines of a record; one that was cut off while it was written is left out."""
    if record is None or not record.exists():
        return
    for line in record.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


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
