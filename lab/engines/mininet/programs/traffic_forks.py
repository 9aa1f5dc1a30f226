"""Run the traffic programs of all hosts as forks of one process, because Python starts slowly.

python -m lab.engines.mininet.programs.traffic_forks SOCKET

SOCKET is the file descriptor of a Unix socket. Each message on it starts one traffic program
(traffic.py). The text of a message is the ID of a process in the host's network namespace, or 0 for
the namespace of this process. The message carries two file descriptors: the program's standard
input and output. The answer is the process ID of the program. This process ends when the socket is
closed. A traffic program ends when its input ends.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys

from lab.engines.mininet.kernel import netlink
from lab.engines.mininet.programs import traffic

MESSAGE_BYTES = 32


def serve(control: socket.socket) -> None:
    """Start a traffic program for each message on the socket `control`, until it is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended programs leave no zombies
    with contextlib.suppress(ConnectionError):  # closed before all answers were read
        while True:
            message, streams, _flags, _address = socket.recv_fds(control, MESSAGE_BYTES, 2)
            if not message:
                return
            child = os.fork()
            if child == 0:
                control.close()
                _run(int(message), streams)
            for each in streams:
                os.close(each)
            control.send(str(child).encode())


def _run(namespace_of: int, streams: list[int]) -> None:
    """Run a traffic program in this forked process, and end the process afterwards.

    The program runs in the network namespace of the process `namespace_of`; 0 means no change.
    `streams` are the file descriptors for its standard input and output.
    """
    status = 1
    try:
        os.setsid()
        for number, each in enumerate(streams):
            os.dup2(each, number)
            os.close(each)
        if namespace_of:
            netlink.inside(namespace_of, traffic.main)
        else:
            traffic.main()
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
