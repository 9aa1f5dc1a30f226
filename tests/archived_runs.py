"""Short simulated runs, made in this process."""

from __future__ import annotations

from lab.engines import registry
from lab.run import inbox, runner
from lab.run.engine import Options
from lab.run.recorder import Recorder
from lab.scenario import loading
from lab.scenario.loading import Overrides


def made(folder, messages=None, **overrides):
    """Simulate one second in `folder`; each message is sent after the sample at its time [s]."""
    left = dict(messages or {})
    settings = ("sample_interval_s=0.1",)
    of = loading.load("two_paths", Overrides(duration_s=1.0, settings=settings, **overrides))
    folder.mkdir(parents=True)

    def send(progress):
        if message := left.pop(round(progress.t, 1), None):
            inbox.send(folder, message)

    engine = registry.create("sim", Options(0.0))
    runner.run(of, engine, Recorder(folder, of, "sim"), send)
    return folder
