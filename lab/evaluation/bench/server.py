"""Start a dashboard in a process of its own, for measurements."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.run.manifest import ROOT

SERVER = """
import sys, threading, time
from pathlib import Path
from dashboard import create_app
from dashboard.serve import listen, server
sock = listen(None)
app = create_app({"RUNS": Path(sys.argv[1])})
waitress = server(app, sock)
threading.Thread(target=waitress.run, daemon=True).start()
print(sock.getsockname()[1], flush=True)
for line in sys.stdin:
    print(time.process_time(), flush=True)
app.extensions["launcher"].stop_all()
"""


@contextmanager
def dashboard(runs: Path) -> Iterator[tuple[str, Callable[[], float]]]:
    """Start a dashboard in a new process. Yield its URL and a function that returns the CPU time in
    s that this process has used. At the end, stop the runs that the dashboard has started."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(runs)], cwd=ROOT, **pipes)  # type: ignore[call-overload]

    def answer() -> bytes:
        return bytes(process.stdout.readline())

    def spent_s() -> float:
        process.stdin.write(b"\n")
        process.stdin.flush()
        return float(answer())

    try:
        yield f"http://127.0.0.1:{int(answer())}", spent_s
    finally:
        process.communicate()
