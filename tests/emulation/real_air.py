"""Measure two stations under an 802.11 medium: hwsim and wmediumd instead of the lab's cell.

As root on a machine or VM with hwsim: PYTHONPATH=.:tests python -m emulation.real_air TURNS FILE

    strong ~ (9 Mb/s)
            ap (hostapd, 802.11g with the rates 2 and 9 Mb/s) --- router, 5 ms one way --- server
    weak ~ (2 Mb/s)

wmediumd (interference mode, log-distance loss) decides how long each frame uses the air and which
frames are lost; the rate control of mac80211 decides the rate of each frame. wmediumd's queue is
unlimited, so the receive buffer limits the windows. FILE gets one JSON object per scene: who
downloads, what each station receives in Mb/s, and `idle_share`, the idle share of the processors.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from emulation.processor_times import busy_s_by_program, idle_s
from emulation.small_network import NoLedger

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.machine import upstreams
from lab.engines.mininet.network import real_medium, wifi
from lab.engines.mininet.traffic.processes import TrafficProcesses

RADIOS = ("ap", "strong", "weak")
# Signal to noise ratios in dB at 119 and 238 m from the access point in the log-distance
# model (exponent 3). In the error model, frames of 9 Mb/s reach only the strong station.
# wmediumd could compute them from places, but its path loss reads a frequency that is never set.
SIGNALS = "(0, 1, 14), (0, 2, 5), (1, 2, 14)"
STATIONS = ("strong", "weak")
BUFFER_BYTES = 48_000
WARM_UP_S, MEASURED_S = 4, 15
ASSOCIATION_TIMEOUT_S = 30
DELAY_NS = 5_000_000
SETTINGS = "net.ipv4.ip_forward=1 net.ipv4.tcp_no_metrics_save=1 net.ipv4.conf.all.rp_filter=0"
HOSTAPD = """interface=ap-wlan1
driver=nl80211
ssid=real-air
hw_mode=g
channel=1
supported_rates=20 90
basic_rates=20
"""
MEDIUM = "ifaces : {{ ids = [{ids}]; links = ({links}); enable_interference = true; }};\n"


class RealAir:
    """The network, with the methods that `TrafficProcesses` needs."""

    hosts = (*STATIONS, "server")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        holding = ["unshare", "--net", "sh", "-c", "echo; read _"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._holders = {name: subprocess.Popen(holding, **pipes) for name in self.hosts}
        for holder in self._holders.values():
            holder.stdout.readline()
        self._daemons: list[subprocess.Popen] = []

    def pid(self, name: str) -> int:
        return self._holders[name].pid

    def inside(self, name: str, argv: list[str]) -> list[str]:
        return argv if name == "ap" else ["nsenter", "-t", str(self.pid(name)), "-n", *argv]

    def run(self, name: str, command: str, stdin: str | None = None) -> str:
        argv = self.inside(name, command.split())
        return subprocess.run(
            argv, input=stdin, text=True, check=True, stdout=subprocess.PIPE
        ).stdout

    def start(self) -> None:
        """Start radios and links first, then the medium, then the programs."""
        owners = [wifi.Radio("rair0", "ap-wlan1", None)]
        owners += [
            wifi.Radio(f"rair{n}", f"{name}-wlan0", self.pid(name))
            for n, name in enumerate(STATIONS, 1)
        ]
        wifi.make_radios(owners)
        lines = {name: ["link set lo up"] for name in (*self.hosts, "ap")}
        lines["ap"] += ["addr add 10.9.0.1/24 dev ap-wlan1"]
        lines["ap"] += [
            f"link add r0 type veth peer name s0 netns {self.pid('server')}",
            "link set r0 up gso_max_segs 1",
        ]
        lines["ap"] += ["addr add 10.0.0.2/24 dev r0"]
        lines["server"] += [
            "link set s0 up gso_max_segs 1",
            "addr add 10.0.0.1/24 dev s0",
            "route add default via 10.0.0.2",
        ]
        for n, name in enumerate(STATIONS, 2):
            device = f"{name}-wlan0"
            lines[name] += [
                f"link set {device} up gso_max_segs 1",
                f"addr add 10.9.0.{n}/24 dev {device}",
                "route add default via 10.9.0.1",
            ]
        for name in ("ap", *self.hosts):
            self.run(name, f"sysctl -qw {SETTINGS}")
            self.run(name, "ip -batch -", shaping.batch(lines[name]))
        for name, device in (("ap", "r0"), ("server", "s0")):
            self.run(name, f"ethtool -K {device} tso off gso off gro off")
            self.run(name, f"tc {shaping.link(device, None, DELAY_NS)}")
        self._start_medium()
        self._associate()
        self.programs = TrafficProcesses(self, NoLedger(), self.hosts)
        self.programs.send("server", do="serve", mptcp=False)

    def _start_medium(self) -> None:
        ids = ", ".join(f'"{self._mac(name)}"' for name in RADIOS)
        text = MEDIUM.format(ids=ids, links=SIGNALS)
        (self.folder / "medium.cfg").write_text(text)
        (self.folder / "hostapd.conf").write_text(HOSTAPD)
        program = upstreams.wmediumd()
        self._daemon([str(program), "-l", "5", "-c", str(self.folder / "medium.cfg")], "wmediumd")
        time.sleep(1)
        real_medium.enlarge_socket_buffer(self._daemons[-1].pid)
        self._daemon(["hostapd", str(self.folder / "hostapd.conf")], "hostapd")
        time.sleep(2)

    def _daemon(self, argv: list[str], name: str) -> None:
        log = (self.folder / f"{name}.txt").open("w")
        self._daemons.append(subprocess.Popen(argv, stdout=log, stderr=log))

    def _mac(self, name: str) -> str:
        device = "ap-wlan1" if name == "ap" else f"{name}-wlan0"
        return re.search(r"link/ether (\S+)", self.run(name, f"ip link show dev {device}")).group(1)

    def _associate(self) -> None:
        deadline = time.monotonic() + ASSOCIATION_TIMEOUT_S
        waiting = {name: self._mac(name) for name in STATIONS}
        while waiting:
            for name in waiting:
                command = f"iw dev {name}-wlan0 connect real-air 2412"
                subprocess.run(self.inside(name, command.split()), check=False, capture_output=True)
            time.sleep(3)
            associated = self.run("ap", "iw dev ap-wlan1 station dump")
            waiting = {name: mac for name, mac in waiting.items() if mac not in associated}
            if time.monotonic() > deadline and waiting:
                raise SystemExit(
                    f"associate {', '.join(waiting)}: not within {ASSOCIATION_TIMEOUT_S} s. "
                    f"{self.last_lines()}"
                )

    def last_lines(self) -> str:
        """End of each daemon's log."""
        return " / ".join(
            f"{path.name}: {path.read_text()[-300:]}" for path in sorted(self.folder.glob("*.txt"))
        )

    def download(self, scene: str, names: tuple[str, ...]) -> dict[str, object]:
        """Measure a scene in which these stations download at once, after a warm-up."""
        for name in names:
            address = {each: f"10.9.0.{n}" for n, each in enumerate(STATIONS, 2)}[name]
            request = {
                "id": f"{scene}-{name}",
                "server": "10.0.0.1",
                "bind": address,
                "mptcp": False,
                "direction": "down",
            }
            more = {
                "cc": "reno",
                "rate_bps": None,
                "volume_bytes": None,
                "receive_buffer_bytes": BUFFER_BYTES,
            }
            self.programs.send(name, do="connect", **request, **more)
        for name in names:
            self.programs.send(name, do="go", id=f"{scene}-{name}")
        time.sleep(WARM_UP_S)
        before, idle, began = self._received(scene, names), idle_s(), time.monotonic()
        counters, ticks, lost = self._counters(), busy_s_by_program(), self._lost()
        time.sleep(MEASURED_S)
        after, took_s = self._received(scene, names), time.monotonic() - began
        idle_share = (idle_s() - idle) / took_s
        dump = self.run("ap", "iw dev ap-wlan1 station dump")
        senders = self.run("server", "ss -tin state established")
        for name in names:
            self.programs.send(name, do="stop", id=f"{scene}-{name}")
        time.sleep(1)
        return {
            "mbps": {
                name: round((after[name] - before[name]) * 8 / took_s / 1e6, 3) for name in names
            },
            "tx_bitrate": re.findall(r"tx bitrate:\s*(\S+)", dump),
            "idle_share": round(idle_share, 3),
            "lost_before_the_air": self._lost() - lost,
            "frames": {
                k: [b - a for a, b in zip(counters[k], v, strict=True)]
                for k, v in self._counters().items()
            },
            "busy_s": {
                k: round(v - ticks.get(k, 0), 1)
                for k, v in busy_s_by_program().items()
                if v - ticks.get(k, 0) > 0.5
            },
            "senders": re.findall(
                r"(10\.9\.0\.\d+|rtt:\S+|retrans:\S+|cwnd:\d+|rwnd_limited:\S+)", senders
            ),
        }

    def _received(self, scene: str, names: tuple[str, ...]) -> dict[str, int]:
        return {
            name: self.programs.send(name, do="status")["flows"][f"{scene}-{name}"]["bytes"]
            for name in names
        }

    def stop(self) -> None:
        for daemon in self._daemons:
            daemon.terminate()
        for holder in self._holders.values():
            holder.communicate(b"\n")

    def _lost(self) -> int:
        """Frames of the access point that did not reach wmediumd."""
        return int(re.search(r"d_tx_failed: (\d+)", self.run("ap", "ethtool -S ap-wlan1")).group(1))

    def _counters(self) -> dict[str, list[int]]:
        """The access point's frame counters, one number per station."""
        dump = self.run("ap", "iw dev ap-wlan1 station dump")
        return {
            k: [int(n) for n in re.findall(rf"{k}:\s*(\d+)", dump)]
            for k in ("tx packets", "tx retries", "tx failed", "rx packets")
        }


def main(turns: int, out: Path) -> None:
    """Write all scenes of each turn to `out`; after a failure, print the logs."""
    with tempfile.TemporaryDirectory() as folder, out.open("w") as lines:
        air = RealAir(Path(folder))
        try:
            air.start()
            for turn in range(1, turns + 1):
                for who, names in (
                    ("strong", ("strong",)),
                    ("weak", ("weak",)),
                    ("both", STATIONS),
                ):
                    scene = {"turn": turn, "who": who, **air.download(f"{who}-{turn}", names)}
                    print(json.dumps(scene), flush=True)
                    print(json.dumps(scene), file=lines, flush=True)
        except BaseException:
            print(air.last_lines(), flush=True)
            raise
        finally:
            air.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
