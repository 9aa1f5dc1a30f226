"""Write the commands of a run as a shell script, commands.sh, that builds the network again.

Process IDs are valid only during a run. So the script stores the IDs of the processes that keep the
hosts' network namespaces open in the array `pid`. Later commands read the IDs from this array.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

HEADER = """\
#!/bin/bash
# The commands of this run, in order. As root on a machine without a run, `bash commands.sh` builds
# the network once more, without its pauses. ${pid[NAME]} is a process in the host NAME. Programs
# that only work together with the runner (POX, agents, traffic) are comments.
declare -A pid
hold() { # make the host $1 with the remaining words, and wait until it exists
    local ready
    exec {ready}< <(exec "${@:2}" </dev/null 2>/dev/null)
    pid[$1]=$!
    read -r -u "$ready"
}
"""
HOLDER = "mininet:"  # begins the last argument of the process that holds a host's namespace
PID_AFTER = {"-a", "-cda", "netns"}  # options of mnexec, ip and iw that a process number follows
OF_THE_RUNNER = ("python", "tcpdump")
STAYING = ("wmediumd",)  # run until they are killed


class CommandScript:
    """Formats commands as lines of commands.sh, a script that builds the network of a run again.

    In the script, variables replace the process IDs of hosts. `pids` returns the current process ID
    of each host.
    """

    def __init__(self, pids: Callable[[], Mapping[str, int]]) -> None:
        self._pids = pids

    def lines(self, argv: Sequence[str], stdin: str | None = None) -> list[str]:
        """Return the lines of the script for one command.

        `stdin` is the standard input of the command. A batch of `ip` or `tc` commands becomes one
        line per command, so that each can be pasted into a shell. Any other standard input becomes
        a here-document.
        """
        if argv[-1].startswith(HOLDER):
            host = argv[-1].removeprefix(HOLDER)
            return [shlex.join(["hold", host, *argv[:-2], "echo; exec sleep infinity", argv[-1]])]
        if any(Path(word).name.startswith(OF_THE_RUNNER) for word in argv):
            return [f"# {line}" for line in shlex.join(argv).splitlines()]
        if Path(argv[0]).name in STAYING:
            return [f"{self._line(argv)} >/dev/null 2>&1 &"]
        if stdin is None:
            return [self._line(argv)]
        if "-batch" not in argv:
            return [f"{self._line(argv)} <<'END'\n{stdin.rstrip()}\nEND"]
        program = argv[: list(argv).index("-batch")]
        return [self._line([*program, *line.split()]) for line in stdin.splitlines()]

    def _line(self, argv: Sequence[str]) -> str:
        hosts = {str(pid): host for host, pid in self._pids().items()}
        return " ".join(
            f"${{pid[{shlex.quote(hosts[word])}]}}"
            if before in PID_AFTER and word in hosts
            else shlex.quote(word)
            for before, word in zip(("", *argv), argv, strict=False)
        )
