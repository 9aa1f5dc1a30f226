"""Stop a run from outside, also if its process no longer reads its inbox.

1) Put the message "stop" into the inbox, and continue the process if a signal has suspended it.
   Most runs then end by themselves and keep their results.
2) If the message is still there after `ANSWERS_WITHIN_S`, send SIGINT, as Ctrl-C does.
3) If the process is still there `ENDS_WITHIN_S` later, kill it, and write into events.jsonl what
   was done. The run is then listed as `cut`.

The process is known by its id and its start time, so no other process gets a signal.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

from lab.errors import LabError, RequestError
from lab.run import inbox, process
from lab.run.process import Manifest
from lab.run.reading import last_sample, read_document

ANSWERS_WITHIN_S = 10.0
ENDS_WITHIN_S = 60.0  # an emulation takes down its network
KILLED_WITHIN_S = 5.0
POLL_S = 0.1
KILLED = "killed"  # a field of the event that says so
_followed: set[Path] = set()
_mutex = threading.Lock()


def stop(folder: Path) -> str:
    """Ask the run in `folder` to stop, and see to it in a thread that it does. Return the number
    of the message.

    Raise `RequestError` if the run has no inbox, or if its process is suspended and belongs to
    another user.
    """
    seq = inbox.send(folder, {"control": "stop"})
    try:
        manifest = read_document(folder, "manifest.json")
    except LabError:
        return seq  # a process that cannot be known cannot be ended
    try:
        process.send(manifest, signal.SIGCONT)
    except PermissionError as error:
        if process.is_suspended(manifest):
            raise RequestError(
                f"stop run '{folder.name}': its process is suspended and belongs to another user. "
                f"Type: sudo kill -CONT {manifest['pid']}"
            ) from error
    with _mutex:
        if folder not in _followed:
            _followed.add(folder)
            threading.Thread(target=_follow, args=(folder, seq, manifest), daemon=True).start()
    return seq


def suspended_text(manifest: Manifest) -> str:
    """Return for the page that the process of a run is suspended, and what to do; "" if not."""
    if not process.is_suspended(manifest):
        return ""
    return (
        f"process {manifest['pid']} of this run is suspended (SIGSTOP or Ctrl-Z) and makes no "
        f"progress. Continue it with: kill -CONT {manifest['pid']}  or press Stop, which ends it"
    )


def _end(folder: Path, manifest: Manifest) -> None:
    try:
        if not process.send(manifest, signal.SIGINT):
            return
        process.send(manifest, signal.SIGCONT)
        if _has_ended(manifest, folder, ENDS_WITHIN_S):
            return
        if process.send(manifest, signal.SIGKILL) and _has_ended(manifest, folder, KILLED_WITHIN_S):
            _note(folder)
    except PermissionError:
        return


def _follow(folder: Path, seq: str, manifest: Manifest) -> None:
    try:
        message, ends = folder / "inbox" / f"{seq}.json", time.monotonic() + ANSWERS_WITHIN_S
        while process.alive(manifest, folder) and message.exists():
            if time.monotonic() > ends:
                _end(folder, manifest)
                return
            time.sleep(POLL_S)
    finally:
        with _mutex:
            _followed.discard(folder)


def _has_ended(manifest: Manifest, folder: Path, within_s: float) -> bool:
    ends = time.monotonic() + within_s
    while process.alive(manifest, folder):
        if time.monotonic() > ends:
            return False
        time.sleep(POLL_S)
    return True


def _note(folder: Path) -> None:
    """Append to events.jsonl that the process was killed. Nobody else writes to it any longer."""
    text = (
        f"The run did not answer Stop for {ANSWERS_WITHIN_S + ENDS_WITHIN_S:g} s, so its process "
        "was killed. It has no result; the samples until then are kept"
    )
    path = folder / "events.jsonl"
    try:
        t = (last_sample(folder) or {}).get("t", 0)
        line = json.dumps({"t": t, "kind": "warning", KILLED: True, "text": text})
        with path.open("r+b") as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(0, size - 1))
            unfinished = file.read(1) not in (b"", b"\n")  # the kill may have cut a line
            file.write(b"\n" * unfinished + line.encode() + b"\n")
    except OSError:
        return  # the page still says that the run was cut
