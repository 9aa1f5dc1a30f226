"""Slower clocks for emulations with which a machine cannot keep up (`--dilation auto`).

A run that overloads the machine is stopped, and made again with clocks that are `STEP` times
slower. Later runs of the same network, strategy and rate scale begin with the clocks that the
earlier ones needed. The first of them begins in real time, or with a factor that is expected to
suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import overload

from lab.batch.job import Job
from lab.errors import LabError
from lab.run.outcome import Outcome
from lab.run.reading import read_document

STEP = 2.0
SLOWEST = 16.0
TRIES = 5  # of one run: 1, 2, 4, 8, 16
Expected = Callable[[Job], float]  # the factor that is expected to suffice for a job


def can_be_slower(job: Job) -> bool:
    """Return whether a run that overloads the machine is to be made again with slower clocks. The
    clocks of a VM that uses KVM cannot be slowed."""
    return job.dilation is not None and job.dilation < SLOWEST and not _uses_kvm()


def _uses_kvm() -> bool:
    from lab.engines.mininet.machine import vm_kernel  # for an emulation only

    return bool(vm_kernel.remembered_kvm())


class Slowed(Sequence[Job]):
    """The jobs of a batch, each with the factor by which the clocks of its VM have to be slower.

    The jobs may be made when they are asked for, so they are not kept here. Without `expected`, the
    first factor is 1.
    """

    def __init__(self, jobs: Sequence[Job], expected: Expected | None = None) -> None:
        self._jobs, self._expected = jobs, expected
        self._factors: dict[tuple[str, ...], float] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, n: int) -> Job: ...

    @overload
    def __getitem__(self, n: slice) -> Sequence[Job]: ...

    def __getitem__(self, n: int | slice) -> Job | Sequence[Job]:
        if isinstance(n, slice):
            return [self[each] for each in range(*n.indices(len(self)))]
        job = self._jobs[n]
        if not job.vm:
            return job
        return replace(job, dilation=self._factors.get(_kind(job)) or self._first(job))

    def _first(self, job: Job) -> float:
        if self._expected is None or _uses_kvm():
            return 1.0
        return min(self._expected(job), SLOWEST)

    def note(self, n: int, outcome: Outcome) -> None:
        """Take note of an outcome. If the machine was overloaded, the clocks have to be slower."""
        job = self[n]
        if outcome.result.get("overloaded") and can_be_slower(job):
            with suppress(LabError):
                host = read_document(outcome.folder, "manifest.json")["host"]
                factor = min(STEP * host.get("time_dilation", 1.0), SLOWEST)
                self._factors[_kind(job)] = max(job.dilation or 1.0, factor)


def _kind(job: Job) -> tuple[str, ...]:
    scenario = job.scenario
    return scenario.network.sha256(), scenario.strategy.name, str(scenario.rate_scale)
