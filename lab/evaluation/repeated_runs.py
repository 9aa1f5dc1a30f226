"""Make runs, and repeat those that cannot be used as evidence."""

from __future__ import annotations

from collections.abc import Sequence

from lab.batch import jobs
from lab.batch.jobs import Display, Job
from lab.run.outcome import EXIT_INTERRUPTED, is_whole

TRIES = 3


def make_runs(planned: Sequence[Job], tries: int, display: Display) -> bool:
    """Make the `planned` runs. Return False if the user interrupted.

    A run that is incomplete or overloaded the machine is repeated after all others, because another
    program may have kept the machine busy. There are at most `tries` rounds. Runs that can be used
    are not made again.
    """
    for round_ in range(tries):
        if round_:
            display.say("runs that failed or overloaded the machine are repeated")
        ended = jobs.run_all(planned, display)
        interrupted = any(each.exit_code == EXIT_INTERRUPTED for each in ended)
        if interrupted or len(ended) < len(planned):
            return False
        if all(is_whole(each.result) for each in ended):
            break
    return True
