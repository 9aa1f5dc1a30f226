"""The statistics file and the run folder."""

from __future__ import annotations

import json
import threading

from controller.agent_messages import ParamsFlip
from controller.pox_ext import statistics
from controller.pox_ext.run_folder import RunFolder


def test_the_latest_tables_are_written(tmp_path):
    writer = statistics.Writer(tmp_path / "statistics.json")
    for value in range(50):
        writer.put({"ports": [{"port": 1, "mbps": value}], "aps": []})
    writer.close()
    assert statistics.read(tmp_path / "statistics.json")["ports"] == [{"port": 1, "mbps": 49}]
    assert not list(tmp_path.glob("*.new"))


def test_a_reader_never_sees_half_a_file(tmp_path):
    path = tmp_path / "statistics.json"
    writer = statistics.Writer(path)
    writer.put({"ports": [{"port": 0}] * 200})
    stop = threading.Event()
    seen = []

    def read():
        while not stop.is_set():
            if path.exists():
                seen.append(len(json.loads(path.read_text())["ports"]))

    reader = threading.Thread(target=read)
    reader.start()
    for value in range(30):
        writer.put({"ports": [{"port": value}] * 200})
    writer.close()
    stop.set()
    reader.join()
    assert set(seen) <= {200}


def test_a_missing_or_broken_file_holds_nothing(tmp_path):
    assert statistics.read(tmp_path / "none.json") == {}
    (tmp_path / "broken.json").write_text("{")
    assert statistics.read(tmp_path / "broken.json") == {}


def test_messages_are_read_once_and_in_order_and_invalid_ones_say_why(tmp_path):
    folder = RunFolder(tmp_path)
    for seq in (2, 1):
        (tmp_path / "inbox" / f"{seq:06d}.json").write_text(
            json.dumps({"seq": seq, "kind": "params", "value": {}})
        )
    (tmp_path / "inbox" / "000003.json").write_text("{")
    first, second, third = folder.messages()
    assert (first, second) == (
        ParamsFlip(kind="params", seq=1, value={}),
        ParamsFlip(kind="params", seq=2, value={}),
    )
    assert third.seq == 3
    assert third.why.startswith("inbox/000003.json: read an inbox message")
    assert list(folder.messages()) == []
    folder.close()


def test_every_line_is_whole_and_stamped(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write({"kind": "ready"})
    folder.write({"kind": "warning", "text": "two\nlines"})
    folder.close()
    lines = [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["ready", "warning"]
    assert all(line["at"] > 1e9 for line in lines)
