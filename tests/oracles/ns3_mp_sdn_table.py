"""Measure the WiFi cells of `mp_sdn_cells.py` with ns-3, as `ns3_wifi_table.py` does: TCP downloads
of all stations, from 3 to 6 s. The first argument has the cells, the second gets the table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import ns3_wifi_table
from ns3_wifi_cases import Case

WARM_S, MEASURED_S = 3.0, 3.0
PAYLOAD_BYTES = 1448


def main(cells: Path, table: Path) -> None:
    ns3_wifi_table.WARM_TCP_S, ns3_wifi_table.MEASURED_S = WARM_S, MEASURED_S
    found: dict[tuple[float, ...], list[float]] = {}  # a cell keeps its stations in many networks
    with table.open("w", encoding="utf-8") as file:
        for number, line in enumerate(cells.read_text(encoding="utf-8").splitlines(), 1):
            cell = json.loads(line)
            rates = tuple(cell["rates_mbps"])
            if rates not in found:
                case = Case(number, "TCP downloads", rates, (False,) * len(rates))
                found[rates] = ns3_wifi_table.measure(case)
            mbps = [round(each * 8 * PAYLOAD_BYTES / 1e6, 4) for each in found[rates]]
            file.write(json.dumps(cell | {"goodput_mbps": mbps}) + "\n")
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
