"""Live streams: one reader per run, positions that stay valid, and a limit on streams."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from urllib.request import urlopen

import pytest
from conftest import until

from dashboard import stream
from dashboard.stream import EVENTS, Streams, Tail, read


def chunks(text):
    """(id, event, data) of each server-sent event."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(
            line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")
        )
        if "event" in fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def test_a_finished_run_streams_to_its_end(client):
    sent = chunks(client.get("/api/runs/metered/stream").text)
    assert [data["t"] for _, kind, data in sent if kind == "sample"] == [
        n / 2 for n in range(1, 41)
    ]
    assert any(
        kind == "event" and data["mark"] == "tick" and data["reason"] for _, kind, data in sent
    )
    assert (sent[-1][1], sent[-1][2]["status"]) == ("status", "complete")


def test_last_event_id_resumes_where_it_was(client):
    whole = chunks(client.get("/api/runs/metered/stream").text)
    half = whole[len(whole) // 2]
    rest = chunks(
        client.get("/api/runs/metered/stream", headers={"Last-Event-ID": str(half[0])}).text
    )
    assert rest == whole[len(whole) // 2 + 1 :]


def test_polling_returns_the_same_messages_as_the_stream(client):
    streamed = [
        (kind, data)
        for _, kind, data in chunks(client.get("/api/runs/metered/stream").text)
        if kind != "status"
    ]
    first = client.get("/api/runs/metered/frames?since=0").json
    assert [(each["type"], each["data"]) for each in first["messages"]] == streamed
    assert client.get(f"/api/runs/metered/frames?since={first['seq']}").json["messages"] == []
    assert client.get("/api/runs/metered/frames?since=x").status_code == 400


def test_charts_return_the_position_to_continue_from(client):
    seq = client.get("/api/runs/metered/charts").json["seq"]
    assert seq // EVENTS == 40
    assert client.get(f"/api/runs/metered/frames?since={seq}").json["messages"] == []


def test_a_browser_that_is_far_behind_is_served_from_the_files(runs, monkeypatch):
    monkeypatch.setattr(stream, "KEPT", 10)
    tail = Tail(runs / "metered")
    tail.poll(True)
    assert len(tail._kept) == 10
    got = tail.since(0)
    while more := tail.since(got[-1].seq):
        assert len(more) <= 10
        got += more
    assert [m.seq for m in got] == [m.seq for m in read(runs / "metered")]
    newest = list(read(runs / "metered"))[-3].seq
    assert len(tail.since(newest)) == 2


def test_too_many_streams_are_refused(app, client, running_run):
    app.extensions["streams"] = Streams(1)
    with app.test_client() as other:
        open_one = other.get(f"/api/runs/{running_run}/stream", buffered=False)
        it = iter(open_one.response)
        next(it)
        refused = client.get(f"/api/runs/{running_run}/stream")
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "5"
        assert "frames?since=SEQ" in refused.json["error"]
        open_one.close()
    assert client.get("/api/runs/metered/stream").status_code == 200


def test_a_running_run_is_followed(client, running_run):
    first = until(lambda: client.get(f"/api/runs/{running_run}/frames?since=0").json["messages"])
    assert first[0]["type"] == "sample"
    seq = first[-1]["seq"]
    later = until(
        lambda: client.get(f"/api/runs/{running_run}/frames?since={seq}").json["messages"]
    )
    assert later[0]["data"]["t"] > first[-1]["data"]["t"]


@pytest.mark.parametrize("seq", [0, 3 * EVENTS + 1])
def test_viewers_share_one_reader(app, runs, seq):
    streams = app.extensions["streams"]
    one, two = (list(streams.watch(runs / "metered", seq, lambda: False)) for _ in range(2))
    assert one == two
    assert len(streams._tails) == 1


VIEWERS, FRAMES = 40, 10


def first_frames(url):
    with closing(urlopen(url, timeout=30)) as stream:
        lines = (line.decode() for line in stream)
        return [
            line
            for line, _ in zip(
                (each for each in lines if '"sf":' in each), range(FRAMES), strict=False
            )
        ]


def test_forty_viewers_receive_the_same_from_one_reader(app, address, running_run):
    until(lambda: any(read(app.config["RUNS"] / running_run)))
    with ThreadPoolExecutor(VIEWERS) as viewers:
        watching = viewers.map(first_frames, [f"{address}/api/runs/{running_run}/stream"] * VIEWERS)
        with urlopen(f"{address}/healthz", timeout=10) as answer:
            assert answer.status == 200
        received = list(watching)
    assert all(len(each) == FRAMES for each in received)
    assert all(each == received[0] for each in received)
    assert len(app.extensions["streams"]._tails) == 1
