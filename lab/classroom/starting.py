"""Convert a run of a class to the command that makes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lab.batch import request as batch
from lab.batch.request import Request
from lab.classroom.lesson import Lesson
from lab.classroom.state import ClassRun
from lab.scenario import engine_table
from lab.worksheets import planning

SHARED_SEAT = "class"  # the seat whose variant the runs of the instructor have
LATE_S = 60.0  # a run may take so much longer than planned
SLOWEST = 3.0  # or so many times longer


def planned(lesson: Lesson, run: ClassRun, speed: float, vm: bool) -> Request:
    """Return the request for a run. `speed` is simulated time over real time; `vm` says whether
    emulations run in the virtual machine."""
    step = lesson.run_step(run).model_copy(update={"engine": run.engine})
    variant = lesson.folder.variant_of(run.seat or SHARED_SEAT, run.worksheet)
    asked = planning.request(step, variant, run.chosen)
    real_time = engine_table.entry(run.engine).real_time
    return replace(
        asked, speed=None if real_time else f"{speed:g}", vm=vm and real_time, wait=real_time
    )


def check(request: Request) -> None:
    """Raise `LabError` if the run cannot be made: the scenario is not valid with these values, or
    the engine or this machine cannot run it."""
    batch.checked(request)


def arguments(request: Request, folder: Path) -> list[str]:
    """Return the arguments of the lab's command line that make the run in `folder`."""
    argv = ["run", request.scenario, "--engine", request.engine, "--quiet", "--out", str(folder)]
    argv += [word for name in request.strategies for word in ("--strategy", name)]
    argv += ["--vm"] * request.vm + ["--wait"] * request.wait
    options = {"seed": request.seed, "duration": request.duration_s, "speed": request.speed}
    argv += [
        word
        for name, value in options.items()
        if value is not None
        for word in (f"--{name}", str(value))
    ]
    return argv + [word for each in request.settings for word in ("--set", each)]


def longest_s(request: Request, speed: float) -> float:
    """Return the real time in s after which a run is ended, because it hangs."""
    assert request.duration_s is not None
    planned_s = request.duration_s / (speed if request.speed else 1.0)
    return planned_s * SLOWEST + LATE_S + (600.0 if request.vm else 0.0)
