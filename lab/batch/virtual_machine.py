"""Run an emulation inside the virtual machine, and read its result files while it runs."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab import extensions, sudo
from lab.batch import slower_clocks
from lab.batch.job import Job, OnProgress
from lab.errors import LabError, MachineLacks, RequestError
from lab.extensions import Extension
from lab.frame import Frame
from lab.run import inbox
from lab.run.outcome import EXIT_INTERRUPTED, Outcome, Progress, conclude
from lab.run.reading import Follower, event, read_document, sample, text_of
from lab.run.recorder import REQUEST, TRACE, Recorder, keep_inputs, new_folder, write_scenario
from lab.scenario.loading import input_files
from lab.vm_environment import asked_dilation


def run_job(job: Job, on_progress: OnProgress) -> Outcome:
    """Run a job inside the virtual machine and return its outcome.

    The host and the virtual machine share the run folder. Ctrl-C is passed on to the run inside the
    virtual machine. Raise `MachineLacks` if the virtual machine cannot start.
    """
    from lab.engines.mininet import in_vm  # for an emulation only

    scenario = job.scenario
    in_vm.require(scenario.congestion_controls, scenario.multipath.by_window)
    folder = new_folder(scenario, job.out)
    on_progress(Progress("starting the virtual machine", 0.0, scenario.duration_s))
    error = None
    try:
        with files_inside() as files:
            argv = argv_inside(job, folder)
            inside = in_vm.GuestCommand(argv, folder, files=files, dilation=job.dilation)
            stopping = _Stopping(job, folder)
            slower = job.dilation or asked_dilation() or 1.0
            report = _reporter(folder, scenario.duration_s, slower, on_progress)
            code = in_vm.run_in_vm(inside, _both(report, stopping), wait=job.options.wait)
            if stopping.stopped:
                code = 0  # nobody interrupted it
    except MachineLacks:  # nothing was started, so the folder is empty
        shutil.rmtree(folder)
        raise
    except LabError as problem:
        error, code = problem, problem.exit_code
    (folder / REQUEST).unlink(missing_ok=True)
    if (folder / "result.json").exists():
        sudo.give_away(folder)
        result = read_document(folder, "result.json")
        if error and result["status"] == "complete":
            error, code = None, 0  # the result is the last thing that a run writes
        return Outcome(result, folder, code, str(error or result.get("error", "")))
    return _without_result(job, folder, code, error)


def _without_result(job: Job, folder: Path, code: int, error: LabError | None) -> Outcome:
    scenario, interrupted = job.scenario, code == EXIT_INTERRUPTED
    error = error or LabError(
        f"run '{scenario.name}' in the virtual machine: no result (status {code}). "
        f"See {folder / 'vm'}"
    )
    recorder = Recorder(folder, scenario, job.engine)
    return conclude(scenario, recorder, None, None if interrupted else error, interrupted)


def argv_inside(job: Job, folder: Path) -> list[str]:
    """Write the complete scenario, and copies of the files that it names, into `folder`.

    Return the command line that runs this scenario in the virtual machine.
    """
    write_scenario(folder / REQUEST, job.scenario)
    keep_inputs(folder, input_files(job.scenario, job.engine))
    scenario = str(folder.resolve() / REQUEST)
    argv = [sys.executable, "-m", "lab", "run", scenario, "--engine", job.engine]
    pcap = ["--pcap"] if job.options.pcap else []
    own = [word for each in own_code() for word in ("--with", str(each.path))]
    return [*argv, *pcap, *own, "--out", str(folder.resolve()), "--quiet"]


def own_code() -> tuple[Extension, ...]:
    """Return the user's Python and C files, which have the same paths inside the virtual machine.

    All registered files are included, because a change during the run can name a file that the
    scenario does not use.
    """
    return tuple(each for each in extensions.registered() if each.kind != "scenario")


@contextmanager
def files_inside() -> Iterator[tuple[tuple[Path, Path], ...]]:
    """Copy the user's registered files, and yield the pairs for `GuestCommand.files`.

    A pair is the path of a file inside the virtual machine, and the path of the copy on this
    machine. The copies have the content that was registered. They are removed at the end of the
    `with` block.
    """
    with tempfile.TemporaryDirectory(prefix="lab-own-") as folder:
        copies = []
        for number, each in enumerate(own_code()):
            copy = Path(folder, f"{number}-{each.path.name}")
            copy.write_bytes(each.source)
            copies.append((each.path, copy))
        yield tuple(copies)


def _both(one: Callable[[], None], other: Callable[[], None]) -> Callable[[], None]:
    def call() -> None:
        one()
        other()

    return call


def _reporter(
    folder: Path, duration_s: float, slower: float, on_progress: OnProgress
) -> Callable[[], None]:
    """Return a function that reports the progress of a run in a virtual machine, whose clocks are
    slower than real time by the factor `slower`.

    Each call passes new lines of log.txt and the latest new sample to `on_progress`. They are read
    from the run folder `folder`.
    """
    samples, log = Follower(folder / "samples.jsonl", sample), Follower(folder / "log.txt", text_of)

    def report() -> None:
        for line in (each for each in log.new() if not each.startswith(TRACE)):
            on_progress(Progress(line.partition(" ")[2], 0.0, duration_s))
        for frame in map(Frame.from_json, samples.new()[-1:]):
            left_s = slower * (duration_s - frame.t)
            on_progress(Progress("running", frame.t, duration_s, frame, left_s))

    return report


class _Stopping:
    """Stops a run that overloads the machine and will be made again with slower clocks."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.stopped = False
        self._folder, self._is_watched = folder, slower_clocks.can_be_slower(job)
        self._events = Follower(folder / "events.jsonl", event)

    def __call__(self) -> None:
        if self._is_watched and any(each.get("overloaded") for each in self._events.new()):
            self._is_watched = False
            with suppress(RequestError):  # it has just ended
                inbox.send(self._folder, {"control": "stop"})
                self.stopped = True
