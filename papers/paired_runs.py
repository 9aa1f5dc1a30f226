"""Run the same experiments in the emulation and in the simulator, to compare the results.

Both engines use the same settings, seeds, rate scale and packet scheduler. The runs are a batch of
`lab.batch.jobs`: finished ones are kept, and emulations that failed or overloaded the machine are
repeated. If the last attempt fails too, its folder is kept, and `Account` gives the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lab.batch import jobs
from lab.batch.cluster import executor
from lab.batch.job import Job
from lab.batch.jobs import TRIES, Display
from lab.batch.request import Request, placed, scenarios_of, together
from lab.batch.slower_clocks import Expected
from lab.errors import MachineLacks, RequestError
from lab.results.documents import FinishedRun
from lab.run.reading import read_document
from lab.scenario import engine_table
from papers.studies import is_evidence


@dataclass(frozen=True)
class Trial:
    """Options of the commands `crosscheck` and `reproduce`.

    `duration_s` replaces the duration of every run. None keeps the durations. A run of the
    emulation that fails or overloads the machine is made at most `tries` times. `cluster` is the
    address of a scheduler of Dask whose workers make the runs. `rate_scale` is that of every run;
    None stands for the one that the emulation has on this machine. `seed` is that of the first run.
    """

    duration_s: float | None = None
    tries: int = TRIES
    cluster: str | None = None
    rate_scale: float | None = None
    seed: int = 1


AS_LINUX = "multipath.scheduler=linux"  # the only scheduler of the kernel
TIME = re.compile(r"^at [\d.]+ s ")  # at the start of a reason for overload
ENGINES = ("mininet", "sim")


@dataclass(frozen=True)
class Experiment:
    """A scenario, and values that replace those of the scenario file.

    `name` is also the path of the experiment's folder inside the folder of an engine. Each of
    `settings` is written as `key.path=value`. A field that is None keeps the value of the scenario
    file.
    """

    name: str
    scenario: str
    strategy: str | None = None
    settings: tuple[str, ...] = ()
    cc: str | None = None
    duration_s: float | None = None


@dataclass(frozen=True)
class Account:
    """The valid runs of an experiment in one engine, and the reasons why other runs cannot be used.

    `studies.is_evidence` says whether a run is valid. `left_out` has one reason for each run that
    is not. `planned` is the number of runs that the experiment needs.
    """

    valid: tuple[FinishedRun, ...]
    left_out: tuple[str, ...]
    planned: int

    @property
    def text(self) -> str:
        """How many runs are valid, and why others are not, such as `2 of 3; overloaded: the
        processors were busy`."""
        reasons = Counter(self.left_out)
        reasons["not run"] += self.planned - len(self.valid) - len(self.left_out)
        parts = [
            f"{count} {reason}" if count > 1 else reason
            for reason, count in reasons.items()
            if count
        ]
        return "; ".join([f"{len(self.valid)} of {self.planned}", *parts]).replace("|", "/")


@dataclass(frozen=True)
class PairedRuns:
    """Makes and reads the runs of experiments in both engines, with `repeat` seeds from `seed` on.

    The run folders are in `runs`/ENGINE/EXPERIMENT. `duration_s` is for trials: it replaces the
    duration of all experiments. `engines` names the emulation first, then the simulator. A run of
    the emulation that fails or overloads the machine is made at most `tries` times. If `tries` is
    0, no run is made in any engine. The workers of `cluster` make the runs, if it is given.
    `rate_scale` is that of all runs; None stands for the one that the emulation has on this
    machine. With `--dilation auto`, runs begin with the clocks that are `expected` to suffice.
    """

    repeat: int
    runs: Path
    display: Display
    duration_s: float | None = None
    engines: tuple[str, str] = ENGINES
    tries: int = TRIES
    cluster: str | None = None
    rate_scale: float | None = None
    seed: int = 1
    expected: Expected | None = None

    def refusal(self, experiment: Experiment) -> str:
        """Return why the emulation cannot run the experiment. Return "" if it can.

        Raise `RequestError` if the simulator cannot run it either, for example because of a wrong
        setting.
        """
        emulation, simulator = self.engines
        self.jobs(experiment, simulator)
        try:
            self.jobs(experiment, emulation)
        except (RequestError, MachineLacks) as error:
            return str(error).replace("|", "/").replace("\n", " ")
        return ""

    def make(self, experiments: Sequence[Experiment], engines: Sequence[str] = ()) -> bool:
        """Make the missing runs of all experiments. By default, the simulator makes its runs first,
        then the emulation. Return False if the user interrupted."""
        for engine in (engines or self.engines[::-1]) if self.tries and experiments else ():
            planned = together([self._request(each, engine) for each in experiments])
            self.display.say(f"{engine}: {len(experiments)} experiments, {len(planned)} runs")
            workers = executor(self.cluster)
            if not jobs.are_made(planned, self.display, workers, self.tries, self.expected):
                return False
        return True

    def jobs(self, experiment: Experiment, engine: str) -> Sequence[Job]:
        """Return one job for each seed of an experiment in one engine. Raise `LabError` if the
        engine cannot run it."""
        return placed(self._request(experiment, engine))

    def finished(self, experiment: Experiment, engine: str) -> list[tuple[FinishedRun, str]]:
        """Return the runs of an experiment in one engine that have a result. Each comes with the
        reason why it cannot be used, or "" if it can."""
        found = []
        for folder in (job.out for job in self.jobs(experiment, engine)):
            if folder is not None and (folder / "result.json").is_file():
                run = FinishedRun(read_document(folder, "result.json"), folder)
                found.append((run, "" if is_evidence(run.result) else _why_left_out(run)))
        return found

    def account(self, experiment: Experiment, engine: str) -> Account:
        found = self.finished(experiment, engine)
        valid = tuple(run for run, why in found if not why)
        left_out = tuple(why for _, why in found if why)
        return Account(valid, left_out, len(self.jobs(experiment, engine)))

    def scale(self, experiment: Experiment) -> float:
        """Return the rate scale of an experiment, which is the same in both engines."""
        if self.rate_scale is not None:
            return self.rate_scale
        request = self._unscaled_request(experiment, self.engines[0])
        return scenarios_of(replace(request, repeat=1))[0].rate_scale

    def length_s(self, experiment: Experiment) -> float:
        request = self._unscaled_request(experiment, self.engines[0])
        return scenarios_of(replace(request, repeat=1))[0].duration_s

    @cached_property
    def _needs_vm(self) -> bool:
        """True if the emulation needs the virtual machine here. The value is cached, because
        finding out takes seconds."""
        return needs_vm()

    def _request(self, experiment: Experiment, engine: str) -> Request:
        request = self._unscaled_request(experiment, engine)
        fixed = f"rate_scale={self.scale(experiment):g}"
        return replace(request, settings=(*request.settings, fixed))

    def _unscaled_request(self, experiment: Experiment, engine: str) -> Request:
        real_time = engine_table.entry(engine).real_time
        trial = f"-{self.duration_s:g}s" if self.duration_s else ""
        scaled = f"-scale{self.rate_scale:g}" if self.rate_scale is not None else ""
        return Request(
            experiment.scenario,
            engine,
            (experiment.strategy,) if experiment.strategy else (),
            cc=experiment.cc,
            seed=self.seed,
            repeat=self.repeat,
            duration_s=self.duration_s or experiment.duration_s,
            settings=(*experiment.settings, AS_LINUX),
            out=self.runs / engine / f"{experiment.name}{trial}{scaled}",
            vm=real_time and self._needs_vm,
            wait=real_time,
        )


def needs_vm() -> bool:
    """Return True if this machine can run the emulation only inside the virtual machine."""
    from lab.engines.mininet.install import doctor

    try:
        doctor.require_native()
    except MachineLacks:
        return True
    return False


def hosts(folders: Iterable[tuple[str, Path]]) -> list[str]:
    """Return where runs were made: one phrase for each combination of engine, kernel, processor and
    git commit.

    `folders` has pairs of an engine and a run folder.
    """
    found = set()
    for engine, folder in folders:
        manifest = read_document(folder, "manifest.json")
        host, commit = manifest["host"], manifest["versions"]["commit"]
        slower = (
            f", clocks {host['time_dilation']:g} times slower" if "time_dilation" in host else ""
        )
        found.add(f"{engine} on Linux {host['kernel']}, {host['cpu']}{slower}, commit {commit}")
    return sorted(found)


def _why_left_out(run: FinishedRun) -> str:
    result = run.result
    if result["status"] != "complete":
        error = f": {result['error']}" if result.get("error") else ""
        return f"{result['status']}{error}".replace("\n", " ")
    if not result["overloaded"]:
        return f"not Multipath TCP: {result['mptcp']['why']}"
    reasons = result.get("overload", {}).get("reasons", ())
    causes = ", ".join(TIME.sub("", each) for each in reasons)
    return f"overloaded: {causes}" if causes else "overloaded"
