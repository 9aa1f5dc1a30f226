"""Make the runs of the campaign `emulation` inside the VM, as root.

`python -m torture.in_the_vm FOLDER` reads jobs from FOLDER, which the host shares: N.json is the
next one, and N.answer.json is its answer. A file `over` ends it. The folder of a run in which
something was wrong is copied to FOLDER/N.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emulation.machine_state import State, bpf_objects, leftovers, processes, state

from lab.engines.mininet.machine import warm
from lab.run.reading import readable_events, readable_samples

ROOT = Path(__file__).resolve().parents[2]
LAB = [sys.executable, "-m", "lab"]
WORDS = {  # a word in the command line of the process to kill
    "hostapd": b"hostapd\0",
    "ovs-vswitchd": b"ovs-vswitchd\0",
    "POX": b"\0pox.py\0",
    "AP agent": b"programs.ap_agent",
    "host agent": b"programs.host_agent",
}
RUNNER = "runner"
NOTICED = {  # words in the event that reports the end of a program
    "hostapd": "has ended (hostapd)",
    "ovs-vswitchd": "Open vSwitch has ended",
    "POX": "POX had ended",
    "AP agent": "the AP agent had ended",
    "host agent": "the host agent had ended",
}
UNVERIFIED = ("hostapd", "ovs-vswitchd")  # without them, a run has not measured what it says
STARTS_WITHIN_S, ENDS_WITHIN_S = 200, 200
LINGERS_S = 180.0
NOTICED_AFTER_S = 2.0  # the end of a program in the last seconds of a run may go unnoticed


@dataclass(frozen=True)
class Job:
    """A run: its command line, which program is killed, and how long after the program's start."""

    number: int
    argv: list[str]
    victim: str = ""
    after_s: float = 0.0


@dataclass
class Answer:
    """What happened in a run. Nothing was wrong if both `problem` and `left` are empty."""

    number: int
    killed: bool = False
    status: str = ""
    error: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    problem: str = ""
    left: list[str] = field(default_factory=list)
    cleaned: int = 0  # things that `clean` removed
    verified: bool | None = None
    mbps: float | None = None  # throughput of all users together
    reasons: list[str] = field(default_factory=list)  # of overload
    figures: dict[str, float] = field(default_factory=dict)
    path_error: float | None = None  # largest of all rates and RTTs, before the traffic


def serve(folder: Path) -> None:
    """Carry out the jobs in `folder`."""
    subprocess.run(["modprobe", "mac80211_hwsim", "radios=0"], check=True)
    before, programs = state(everything=True), Programs()
    (folder / "ready").touch()
    number = 1
    while not (folder / "over").exists():
        file = folder / f"{number}.json"
        if not file.exists():
            time.sleep(0.2)
            continue
        answer, before = carried_out(Job(**json.loads(file.read_text())), before, folder)
        answer.left += programs.left()
        draft = folder / "draft"
        draft.write_text(json.dumps(asdict(answer)))
        draft.rename(folder / f"{number}.answer.json")
        number += 1


class Programs:
    """Finds eBPF programs and maps that stay.

    The kernel keeps a congestion control until the last connection with it is gone. The connections
    of a network that has been removed end by a timeout.
    """

    def __init__(self) -> None:
        self._first = {"prog": set(bpf_objects("prog")), "map": set(bpf_objects("map"))}
        self._since: dict[str, float] = {}

    def left(self) -> list[str]:
        """Those that have been there for more than `LINGERS_S`."""
        new = {each for kind, known in self._first.items() for each in {*bpf_objects(kind)} - known}
        now = time.monotonic()
        self._since = {each: self._since.get(each, now) for each in new}
        return sorted(each for each, since in self._since.items() if now - since > LINGERS_S)


def carried_out(job: Job, before: State, folder: Path) -> tuple[Answer, State]:
    """Make a run. Return what happened, and the state of the machine after it."""
    with tempfile.TemporaryDirectory(dir="/var/lib") as temporary:
        out, answer = Path(temporary) / f"run-{job.number}", Answer(job.number)
        switches = next((argv for _, argv in processes() if WORDS["ovs-vswitchd"] in argv), b"")
        began = time.monotonic()
        killed_at = make(job, out, answer)
        answer.seconds = round(time.monotonic() - began, 1)
        judge(job, out, answer, killed_at)
        if job.victim == "ovs-vswitchd":
            restart(switches)
        if job.victim in (RUNNER, "ovs-vswitchd"):
            clean(answer)
        answer.left = leftovers(before, everything=True, without="programs")
        after = state(everything=True) if answer.left else before  # each is reported once
        if (answer.problem or answer.left) and out.exists():
            shutil.copytree(out, folder / str(job.number), dirs_exist_ok=True)
    return answer, after


def make(job: Job, out: Path, answer: Answer) -> float | None:
    """Make a run, and kill the victim in it. Return when that was [s of the run], or None."""
    argv = [*LAB, "run", *job.argv, "--engine", "mininet", "--quiet", "--out", str(out)]
    log, killed_at = out.with_suffix(".txt"), None
    process = warm.start(argv, "make a run", cwd=ROOT, env=os.environ, log=log)
    if job.victim:
        victim = until(lambda: find(job.victim, process.pid), process, STARTS_WITHIN_S)
        ends_at = time.monotonic() + job.after_s
        until(lambda: time.monotonic() > ends_at, process, STARTS_WITHIN_S)
        if victim and find(job.victim, process.pid) and process.poll() is None:
            os.kill(find(job.victim, process.pid), signal.SIGKILL)
            killed_at, answer.killed = sampled_until(out), True
    try:
        answer.exit_code = process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        answer.problem = f"no end within {ENDS_WITHIN_S} s"
        process.kill()
        process.wait()
    errors = log.read_text() if log.exists() else ""
    if "Traceback" in errors:
        answer.problem = errors[-600:]
    return killed_at


def until(holds: Callable[[], Any], process: warm.Process, within_s: float) -> Any:
    """First true result of `holds`; None if the process ends before or `within_s` is over."""
    deadline = time.monotonic() + within_s
    while not (value := holds()):
        if process.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(0.1)
    return value


def find(victim: str, runner: int) -> int:
    """PID of the process to kill; 0 if there is none."""
    if victim == RUNNER:
        return runner
    return next((pid for pid, argv in processes() if WORDS[victim] in argv), 0)


def judge(job: Job, out: Path, answer: Answer, killed_at: float | None) -> None:
    """Compare the run folder `out` with what must be in it; what is wrong goes to `answer`."""
    file = out / "result.json"
    result = json.loads(file.read_text()) if file.exists() else {}
    answer.status, answer.error = result.get("status", ""), result.get("error") or ""
    answer.verified = result.get("mptcp", {}).get("verified")
    answer.mbps = result.get("throughput_mbps")
    overload = result.get("overload", {})
    answer.reasons = overload.pop("reasons", [])
    answer.figures = {name: value for name, value in overload.items() if name != "overloaded"}
    manifest = out / "manifest.json"
    if manifest.exists():
        measured = json.loads(manifest.read_text()).get("links_measured", {})
        answer.path_error = path_error(measured.values())
    if answer.problem or (job.victim == RUNNER and answer.killed):
        return
    texts = [str(each.get("text", each.get("error", ""))) for each in readable_events(out)]
    undone = [text for text in texts if text.startswith("undo:")]
    if not result:
        answer.problem = "there is no result.json"
    elif answer.exit_code not in (0, 4) or (answer.exit_code == 0) != (answer.status == "complete"):
        answer.problem = f"exit code {answer.exit_code}, status {answer.status}"
    elif not answer.killed and (answer.status != "complete" or answer.verified is not True):
        answer.problem = f"{answer.status}, verified: {answer.verified}, {result.get('error')}"
    elif undone and job.victim != "ovs-vswitchd":
        answer.problem = undone[0]
    elif killed_at is not None and sampled_until(out) > killed_at + NOTICED_AFTER_S:
        if not any(NOTICED[job.victim] in text for text in texts):
            answer.problem = f"nothing reports the end of {job.victim}"
        elif job.victim in UNVERIFIED and answer.verified:
            answer.problem = f"without {job.victim}, the run counts as verified"


def path_error(paths: Iterable[dict[str, dict[str, float | None]]]) -> float | None:
    """Largest relative error of a measured rate or RTT."""
    errors = [
        abs(got / wanted - 1)
        for path in paths
        for name, wanted in path["asked"].items()
        if wanted and (got := path["measured"].get(name))
    ]
    return round(max(errors), 3) if errors else None


def sampled_until(out: Path) -> float:
    """Time of the last sample [s of the run]; 0 if there is none."""
    last = list(readable_samples(out))[-1:] if (out / "samples.jsonl").exists() else []
    return float(last[0]["t"]) if last else 0.0


def restart(switches: bytes) -> None:
    """If Open vSwitch has ended, start it again, as an administrator would."""
    argv = [os.fsdecode(word) for word in switches.split(b"\0") if word]
    if argv and not any(WORDS["ovs-vswitchd"] in each for _, each in processes()):
        subprocess.run(argv, check=True, capture_output=True)


def clean(answer: Answer) -> None:
    """Run `lab clean` after a killed run."""
    with tempfile.NamedTemporaryFile() as log:
        argv, path = [*LAB, "clean"], Path(log.name)
        done = warm.start(argv, "clean up", cwd=ROOT, env=os.environ, log=path)
        status, text = done.wait(ENDS_WITHIN_S), path.read_text()
    answer.cleaned = text.count("removed ")
    if status:
        answer.problem = f"{answer.problem} clean: {text[-300:]}"


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
