"""The runs of a batch as a sequence of jobs, of which each is made when it is asked for.

A scenario takes much longer to load than to copy, and needs far more memory than its text. So each
setting is loaded once and kept in a packed form, and its seeds are derived from it.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from lab.batch.job import Job
from lab.scenario.cautions import cautions
from lab.scenario.loading import with_seed
from lab.scenario.schema import Scenario

MakeJob = Callable[[Scenario, Path | None], Job]  # of a scenario and the folder of its group


@dataclass(frozen=True)
class Group:
    """Runs that differ only in the seed. `first` and `last` are the scenarios of the lowest and the
    highest seed, packed, and `out` is the folder for their run folders."""

    first: bytes
    last: bytes
    first_seed: int
    count: int
    out: Path | None = None
    cautions: tuple[str, ...] = ()

    @classmethod
    def of(cls, first: Scenario, last: Scenario, out: Path | None) -> Group:
        packed = _packed(first)
        same = first is last
        count = last.seed - first.seed + 1
        packed_last = packed if same else _packed(last)
        return cls(packed, packed_last, first.seed, count, out, cautions(first))

    def scenarios(self) -> Iterator[Scenario]:
        """Yield the scenario of each seed."""
        unpacked = _Unpacked()
        return (unpacked.scenario(self, n) for n in range(self.count))


class _Unpacked:
    """Unpacks scenarios, and keeps the latest one: neighbours usually differ only in the seed."""

    def __init__(self) -> None:
        self._latest: tuple[bytes, Scenario] | None = None

    def scenario(self, group: Group, n: int) -> Scenario:
        if n == 0:
            return self._whole(group.first)
        last = self._whole(group.last)
        return last if n == group.count - 1 else with_seed(last, group.first_seed + n)

    def _whole(self, packed: bytes) -> Scenario:
        if self._latest is None or self._latest[0] is not packed:
            scenario: Scenario = pickle.loads(zlib.decompress(packed))  # noqa: S301 - our own
            self._latest = packed, scenario
        return self._latest[1]


class Plan(Sequence[Job]):
    """The jobs of groups of equal size, ordered by group and then by seed."""

    def __init__(self, groups: Sequence[Group], make: MakeJob, chosen: range | None = None) -> None:
        self._groups, self._make, self._unpacked = groups, make, _Unpacked()
        self._each = groups[0].count if groups else 0
        self._chosen = range(len(groups) * self._each) if chosen is None else chosen

    def __len__(self) -> int:
        return len(self._chosen)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What the scenarios of all groups probably do not mean, each once."""
        return tuple(dict.fromkeys(text for group in self._groups for text in group.cautions))

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> Plan: ...
    def __getitem__(self, at: int | slice) -> Job | Plan:
        if isinstance(at, slice):
            return Plan(self._groups, self._make, self._chosen[at])
        number, seed = divmod(self._chosen[at], self._each)
        group = self._groups[number]
        return self._make(self._unpacked.scenario(group, seed), group.out)


def _packed(scenario: Scenario) -> bytes:
    return zlib.compress(pickle.dumps(scenario))
