"""A simulated run is repeated from its files alone, with the changes by hand at their times."""

from __future__ import annotations

import json

import pytest

from lab.batch import repeat
from lab.engines import registry
from lab.errors import RequestError
from lab.run import inbox, runner
from lab.run.engine import Options
from lab.run.reading import MEASURED, read_events, run_digest
from lab.run.recorder import Recorder
from lab.scenario import loading
from lab.scenario.loading import Overrides

SETTINGS = ("sample_interval_s=0.1",)
MESSAGES = {  # sent after the sample at this time [s]
    0.2: [{"target": "link.path1.rate_mbps", "value": 4}],
    0.4: [{"control": "pause"}, {"target": "cc", "value": "lia"}, {"control": "resume"}],
    0.5: [{"control": "speed", "value": 900}, {"target": "link.path1.loss", "value": 7}],
    0.6: [{"nonsense": 1}, {"target": "link.nowhere.loss", "value": 0.1}],
}


@pytest.fixture
def changed(tmp_path):
    """Make a run that MESSAGES change; `stop_s` ends it early."""

    def make(name="a_run", stop_s=None, duration_s=1.0):
        of = loading.load("two_paths", Overrides(duration_s=duration_s, settings=SETTINGS))
        folder = tmp_path / name
        folder.mkdir()
        messages = MESSAGES | ({stop_s: [{"control": "stop"}]} if stop_s else {})

        def send(progress):
            for message in messages.pop(round(progress.t, 1), []):
                inbox.send(folder, message)

        engine = registry.create("sim", Options(0.0))
        runner.run(of, engine, Recorder(folder, of, "sim"), send)
        return folder

    return make


def test_a_run_that_was_changed_by_hand_has_the_same_bytes_again(changed):
    folder = changed()
    events = read_events(folder)
    assert [each["ok"] for each in events if "seq" in each and "ok" in each] == [
        *(True, True, True, True, True),
        *(False, False, False),
    ]
    assert repeat.repeat(folder) == ()


def test_a_run_that_was_stopped_is_stopped_at_the_same_time(changed):
    folder = changed(stop_s=0.7, duration_s=60.0)
    assert json.loads((folder / "result.json").read_text())["status"] == "interrupted"
    assert repeat.repeat(folder) == ()


def test_each_file_that_was_edited_is_named(changed):
    folder = changed()
    for name in ("samples.jsonl", "result.json"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace('"mbps"', '"mbps" ', 1).replace("sim", "SIM", 1))
    assert repeat.repeat(folder) == ("samples.jsonl", "result.json")


def test_a_flip_that_was_moved_in_the_file_changes_the_measurement(changed):
    folder = changed()
    events = read_events(folder)
    sent, _applied = [each for each in events if each.get("target") == "link.path1.rate_mbps"]
    sent["t"] = 0.1
    (folder / "events.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    assert "samples.jsonl" in repeat.repeat(folder)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"versions": {"lab": "0.0.1", "commit": "abc"}}, r"version 0.0.1 \(abc\) made it, and"),
        ({"engine": "mininet"}, "measures in real time"),
        ({"experiment": "another"}, "another experiment"),
    ],
)
def test_a_run_that_cannot_be_repeated_is_named_with_the_reason(changed, wrong, says):
    folder = changed()
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | wrong))
    with pytest.raises(RequestError, match=says):
        repeat.repeat(folder)


def test_a_run_that_was_killed_cannot_be_repeated(changed):
    folder = changed()
    path = folder / "result.json"
    path.write_text(path.read_text().replace('"complete"', '"interrupted"'))
    with pytest.raises(RequestError, match="at a moment that nothing recorded"):
        repeat.repeat(folder)


def test_the_digest_of_a_run_depends_on_each_measured_file_and_on_nothing_else(changed):
    folder = changed()
    before = run_digest(folder)
    (folder / "log.txt").write_text("another time of day")
    assert run_digest(folder) == before
    digests = {before}
    for name in MEASURED:
        with (folder / name).open("a") as file:
            file.write("\n")
        digests.add(run_digest(folder))
    assert len(digests) == 1 + len(MEASURED)
