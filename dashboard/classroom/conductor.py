"""A thread that starts the queued runs of a class, and records how they end.

Each run is a separate process. It continues if the server is killed. The next server finds it by
its run folder.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from dashboard import state
from dashboard.runs import Child, Launcher, interrupt, remove_unused
from lab.classroom import queue
from lab.classroom.queue import LoadMeter
from lab.classroom.room import Room
from lab.classroom.state import ClassRun
from lab.errors import LabError, MachineLacks
from lab.plain_file import remove
from lab.run import stopping
from lab.run.reading import run_digest
from lab.scenario import engine_table

POLL_S = 0.1
SETTLE_S = 0.3  # after a start, so that the measured load includes it
STARTS_WITHIN_S = 30.0  # time for a run that a killed server has started
KILLED_AFTER_S = 10.0  # after SIGINT, for a run that does not end


@dataclass
class Running:
    """A run in progress.

    `child` is None if an earlier server started the run. `ends_at` is the latest time at which the
    run should end, on the monotonic clock. If the child still runs at that time, it gets SIGINT,
    and `asked` becomes True. A run of an earlier server must have begun at `begins_at`.
    """

    run: ClassRun
    child: Child | None
    ends_at: float
    asked: bool = False
    begins_at: float = 0.0


class Conductor(threading.Thread):
    """The thread that starts and ends the runs of a class.

    `speed` is simulated time over real time. If `vm`, emulations run in the virtual machine.
    """

    def __init__(self, room: Room, launcher: Launcher, speed: float, vm: bool) -> None:
        super().__init__(name="conductor", daemon=True)
        self._room, self._launcher = room, launcher
        self.speed, self.vm = speed, vm
        self.load = LoadMeter()
        self._running: dict[str, Running] = {}
        self._settled_at = 0.0
        self._stopping = threading.Event()
        self._recover()

    def check(self, run: ClassRun) -> None:
        """Raise `LabError` if this machine cannot make the run."""
        request = queue.run_request(self._room.lesson, run, self.speed, self.vm)
        if engine_table.entry(request.engine).real_time and not self.vm and os.geteuid() != 0:
            raise MachineLacks(
                f"start run '{run.step}': the emulation needs root, which this server has not. "
                "Start the class with --vm, or with sudo"
            )
        queue.check_can_run(request)

    def run(self) -> None:
        """Start and end runs until `stop` is called."""
        while not self._stopping.wait(POLL_S):
            self.poll()

    def stop(self) -> None:
        """End this thread and all runs, and record how the runs ended.

        A run that an earlier server started is asked to stop, but its end is not awaited.
        """
        self._stopping.set()
        if self.is_alive():
            self.join()
        self._launcher.stop_all()
        for each in list(self._running.values()):
            if each.child is None:
                with suppress(LabError):
                    stopping.stop(self._room.run_folder(each.run.id))
            else:
                self._ended(each)

    def stop_run(self, run: ClassRun) -> None:
        """Stop a run in progress, or take a waiting run out of the queue.

        Raise `LabError` if the run is still starting.
        """
        if not run.over and not self._room.withdraw(run):
            stopping.stop(self._room.run_folder(run.id))

    def poll(self) -> None:
        """Record the end of runs that have ended, stop late ones, and start the next run if the
        load permits."""
        for each in list(self._running.values()):
            if self._has_ended(each):
                self._ended(each)
            else:
                self._end_if_late(each)
        load = self.load.read()
        if time.monotonic() >= self._settled_at and (run := self._room.take_next(load)):
            self._settled_at = time.monotonic() + SETTLE_S
            self._start(run)

    def _start(self, run: ClassRun) -> None:
        folder = self._room.run_folder(run.id)
        try:
            request = queue.run_request(self._room.lesson, run, self.speed, self.vm)
            remove_unused(folder)
            child = self._launcher.launch(queue.run_arguments(request, folder), folder)
        except (LabError, OSError) as error:
            self._room.ended(run, "failed", "", f"start the run: {error}")
            return
        ends_at = time.monotonic() + queue.longest_s(request, self.speed)
        self._running[run.id] = Running(run, child, ends_at)

    def _has_ended(self, running: Running) -> bool:
        if running.child is not None:
            return running.child.process.poll() is not None
        folder = self._room.run_folder(running.run.id)
        if (folder / "manifest.json").exists():
            return state.of(folder).over
        if time.monotonic() > running.begins_at:
            del self._running[running.run.id]
            remove(folder)
            self._room.resume(running.run, running=False)
        return False

    def _ended(self, running: Running) -> None:
        del self._running[running.run.id]
        folder = self._room.run_folder(running.run.id)
        error = running.child.error_text() if running.child else ""
        if not (folder / "manifest.json").exists():
            self._room.ended(running.run, "failed", "", error or "the run did not start")
            return
        now = state.of(folder)
        status = now.status if now.over else "cut"
        self._room.ended(running.run, status, run_digest(folder), now.error or error)

    def _end_if_late(self, running: Running) -> None:
        late_s = time.monotonic() - running.ends_at
        if late_s < 0:
            return
        if not running.asked:
            running.asked = True
            if running.child is None:
                with suppress(LabError):
                    stopping.stop(self._room.run_folder(running.run.id))
            else:
                interrupt(running.child.process)
        elif late_s > KILLED_AFTER_S and running.child is not None:
            running.child.process.kill()

    def _recover(self) -> None:
        """Take over the runs that were unfinished when the previous server ended."""
        for run in list(self._room.state.unfinished()):
            folder = self._room.run_folder(run.id)
            self._room.resume(run, running=folder.is_dir())
            if folder.is_dir():
                begins_at = time.monotonic() + STARTS_WITHIN_S
                ends_at = begins_at + self._longest_s(run)
                self._running[run.id] = Running(run, None, ends_at, begins_at=begins_at)

    def _longest_s(self, run: ClassRun) -> float:
        try:
            request = queue.run_request(self._room.lesson, run, self.speed, self.vm)
        except LabError:
            return queue.LATE_S
        return queue.longest_s(request, self.speed)
