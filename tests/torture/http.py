"""Campaigns against the HTTP interface: requests made from its description, and raw connections."""

from __future__ import annotations

import random
import resource
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from fake_engine import FakeEngine

from dashboard.app import create_app
from dashboard.base.serving import server
from lab.run.recorder import Recorder
from lab.run.runner import run
from lab.scenario import loading
from lab.scenario.loading import Overrides
from torture import inputs
from torture.campaign import Campaign, Counts, Failed, Impossible

KEY = "k" * 32
NO_RUN = [sys.executable, "-c", "import sys; sys.exit(2)"]  # instead of starting a simulation
SLOW_S = 5.0
QUERIES = ("", "limit", "q", "tag", "since", "points", "runs", "format", "token", "nothing")


def finished_run(folder: Path, *settings: str) -> None:
    """A run folder with two samples."""
    folder.mkdir(parents=True)
    scenario = loading.load("testbed_wifi_lte", Overrides(settings=("duration_s=1", *settings)))
    run(scenario, FakeEngine(), Recorder(folder, scenario, "fake"))


def app_with_runs(folder: Path) -> Any:
    for name in ("one", "two"):
        if not (folder / "runs" / name).exists():
            finished_run(folder / "runs" / name)
    return create_app({"RUNS": folder / "runs", "KEY": KEY, "COMMAND": NO_RUN})


def judge(status: int, began: float, request: str) -> None:
    """Raise `Failed` if an answer is wrong (5xx except 503) or takes longer than 5 s."""
    if status >= 500 and status != 503:
        raise Failed(f"{request}: {status}")
    if time.monotonic() - began > SLOW_S:
        raise Failed(f"{request}: {time.monotonic() - began:.1f} s")


class Http(Campaign):
    """Requests do not depend on each other, because IDs are given."""

    name = "http"
    what = "requests made from /openapi.json, with and without the key"
    hangs_after_s = 60.0

    def prepare(self) -> None:
        try:
            from schemathesis import openapi
        except ImportError as error:
            raise Impossible(f"{error}: ./run_lab.sh lint installs it") from error
        self.app = app_with_runs(self.folder)
        schema = openapi.from_wsgi("/openapi.json", self.app)
        self.operations = [each.ok() for each in schema.get_all_operations()]

    def trial(self, rng: random.Random) -> Counts:
        from schemathesis.generation import GenerationMode

        app_with_runs(self.folder)  # a request may have deleted a run
        operation = rng.choice(self.operations)
        mode = rng.choice((GenerationMode.POSITIVE, GenerationMode.NEGATIVE))
        strategy = operation.as_strategy(generation_mode=mode)
        cases = inputs.examples(strategy, rng, 20)  # empty if this request cannot be wrong
        cases = cases or inputs.examples(operation.as_strategy(), rng, 20)
        client, count = self.app.test_client(), 0
        for case in cases:
            path = operation.path.replace("{id}", rng.choice(("one", "two", self.odd_id(rng))))
            query = f"{rng.choice(QUERIES)}={inputs.changed(rng, b'12').decode('latin-1')}"
            body = inputs.examples(inputs.VALUES, rng, 1)[0] if rng.random() < 0.3 else case.body
            for key in (KEY, "", "\u00e4"):
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                self.ask(client, operation.method.upper(), path, query, headers, body, rng)
                count += 1
        return Counts(count)

    def ask(
        self,
        client: Any,
        method: str,
        path: str,
        query: str,
        headers: dict[str, str],
        body: Any,
        rng: random.Random,
    ) -> None:
        content: dict[str, Any] = {}
        if method in ("POST", "PATCH"):
            try:
                text = self.app.json.dumps(body).encode()
            except (TypeError, ValueError):
                text = repr(body).encode(errors="replace")
            text = inputs.changed(rng, text) if rng.random() < 0.5 else text
            content = {"data": text, "content_type": "application/json"}
        began = time.monotonic()
        answer = client.open(path, method=method, query_string=query, headers=headers, **content)
        answer.get_data() if not path.endswith("/stream") else answer.close()
        judge(answer.status_code, began, f"{method} {path!r}?{query!r} {content}")
        without = not headers.get("Authorization", "").endswith(KEY) and "/api/" in path
        if without and answer.status_code in (200, 201, 202, 204):
            raise Failed(f"{method} {path}: answered without the key")

    def odd_id(self, rng: random.Random) -> str:
        made: str = rng.choice((".", "..", "a" * 256, "%2e%2e", "one%00", "%ff", "one%2f.."))
        return made


OTHER = "127.0.0.2"  # an address that nobody uses to stop the server


class Connections(Campaign):
    name = "connections"
    what = "slow readers, half-open connections and many starts at a real server"
    hangs_after_s = 60.0

    def prepare(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
        self.app = app_with_runs(self.folder)
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.socket.getsockname()[1]
        self.server = server(self.app, self.socket)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()

    def trial(self, rng: random.Random) -> Counts:
        kind = rng.choice((self.slow_readers, self.half_open, self.starts, self.raw_bytes))
        count = kind(rng)
        began = time.monotonic()
        with self.connected(OTHER) as sock:
            sock.sendall(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            answer = sock.recv(4096)
        judge(200, began, f"/healthz after {kind.__name__}")
        if b" 200 " not in answer:
            raise Failed(f"/healthz after {kind.__name__}: {answer[:100]!r}")
        return Counts(count)

    def connected(self, source: str = "127.0.0.1") -> socket.socket:
        """Connect from an address of this machine; a server limits how many each may have."""
        return socket.create_connection(("127.0.0.1", self.port), SLOW_S, (source, 0))

    def slow_readers(self, rng: random.Random) -> int:
        request = f"GET /api/runs/one/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        open_now = [self.connected() for _ in range(40)]
        for each in open_now:
            each.sendall(request.encode())
        time.sleep(0.2)
        for each in open_now:
            each.recv(1)
            each.close()
        return 40

    def half_open(self, rng: random.Random) -> int:
        begin = b"POST /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n{"
        source = f"127.1.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        open_now = [self.connected(source) for _ in range(300)]
        for each in open_now:
            each.sendall(begin[: rng.randrange(1, len(begin))])
        with self.connected(OTHER) as sock:
            sock.sendall(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            if not sock.recv(100):
                raise Failed("/healthz while 300 connections are half open: no answer")
        for each in open_now:
            each.close()
        return 300

    def starts(self, rng: random.Random) -> int:
        """Request 50 starts at once, of a program that ends immediately."""
        answers: list[int] = []

        def start() -> None:
            client = self.app.test_client()
            request = {"scenario": "testbed_wifi_lte", "engine": "sim"}
            headers = {"Authorization": f"Bearer {KEY}"}
            answers.append(client.post("/api/runs", json=request, headers=headers).status_code)

        threads = [threading.Thread(target=start) for _ in range(50)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
        if len(answers) != 50 or set(answers) - {422, 429, 503}:
            raise Failed(f"50 starts at once: {sorted(set(answers))}")
        return 50

    def raw_bytes(self, rng: random.Random) -> int:
        whole = f"GET /api/runs?limit=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        for _ in range(20):
            with self.connected() as sock:
                sock.sendall(inputs.changed(rng, whole.encode()) + b"\r\n\r\n")
                sock.shutdown(socket.SHUT_WR)
                answer = sock.recv(200)
            status = answer.split(b" ")[1:2]
            if status and status[0].startswith(b"5") and status[0] not in (b"501", b"503"):
                raise Failed(f"raw bytes: {answer[:100]!r}")
        return 20

    def finish(self) -> None:
        if hasattr(self, "server"):
            self.server.close()
            self.server.task_dispatcher.shutdown()
            self.thread.join(5)
            self.app.extensions["launcher"].stop_all()


ALL = (Http, Connections)
