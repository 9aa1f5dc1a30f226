"""Run the controller as a POX component that controls Open vSwitch bridges.

    cd POX
    PYTHONPATH=LAB python pox.py controller.pox_ext --topology=RUN/pox/topology.json --strategy=NAME

LAB is the folder that holds `controller/`. Configure every bridge with OpenFlow 1.0 and 1.3, fail
mode secure and two controllers: POX's own port (6633) and the port `--of13_port` (6653).
docs/formats.md describes the files and messages.
"""

from __future__ import annotations

import sys
from pathlib import Path

_LAB = str(Path(__file__).resolve().parents[2])
if _LAB not in sys.path:  # started under the name pox_ext from the ext/ folder of POX
    sys.path.append(_LAB)


def launch(
    strategy: str = "none",
    topology: str | None = None,
    run: str | None = None,
    params: str = "",
    of13_port: int = 6653,
    agents_port: int = 6699,
    patience_s: float = 10,
    hosts_port: int = 6698,
    key_file: str | None = None,
    strategy_file: str | None = None,
    strategy_source: str | None = None,
    of13_address: str = "127.0.0.1",
) -> None:
    """Start the controller; POX calls this function with the command-line options.

    `topology` is the path of the topology file. `params` is a JSON object with parameters of the
    strategy. `run` is the run folder, by default the folder of the topology file. `strategy_file`
    is a Python file that defines the strategy. If `strategy_source` is given, it is the path of a
    copy of this file, and the copy runs instead. Switches connect with OpenFlow 1.3 to port
    `of13_port` of `of13_address`.

    AP agents are programs that report the state of access points, and host agents are programs on
    the hosts. Their UDP reports arrive at `agents_port` and at `hosts_port`. These ports are opened
    only if `key_file` names a file with the secret key of the agents. After `patience_s` seconds
    the controller warns about each switch that is not ready, and starts to decide without it.
    """
    from controller.pox_ext import component

    ports = (int(of13_port), int(agents_port))
    component.start(
        strategy,
        topology,
        run,
        params,
        *ports,
        float(patience_s),
        int(hosts_port),
        key_file,
        strategy_file,
        strategy_source,
        of13_address,
    )
