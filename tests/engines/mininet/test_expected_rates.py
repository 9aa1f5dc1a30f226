"""Expected rates in the eBPF map that the congestion control reads."""

from types import SimpleNamespace

import pytest
from machine import needs_root

from controller.host_messages import HostCommand, SubflowChange
from lab.engines.mininet.ebpf import build, kernel_name, our_name
from lab.engines.mininet.ebpf.load import Laws
from lab.engines.mininet.kernel import netlink, tcp_sockets
from lab.engines.mininet.kernel.subflow_rates import ExpectedRates
from lab.engines.mininet.kernel.tcp_sockets import TcpSocket
from lab.engines.mininet.machine import shell
from lab.engines.mininet.programs.host_agent import ControlledHost, HostSettings

LOCAL, REMOTE = ("10.0.0.1", 5001), ("10.1.0.3", 40112)
RATE_BPS = 4_500_000
needs_ebpf = pytest.mark.skipif(build.lacking() != [], reason="this kernel cannot run laws")


def sending(source=LOCAL, destination=REMOTE):
    counters = dict.fromkeys(TcpSocket.__dataclass_fields__, 0)
    return TcpSocket(**counters | {"source": source, "destination": destination})


def test_the_kernels_own_congestion_controls_become_laws():
    assert [kernel_name(cc, by_window=True) for cc in ("reno", "cubic", "lia")] == [
        "bpf_reno",
        "bpf_cubic",
        "bpf_lia",
    ]
    assert [our_name(cc) for cc in ("bpf_reno", "bpf_cubic")] == ["reno", "cubic"]


def test_without_a_map_no_subflow_has_an_expected_rate(tmp_path):
    assert ExpectedRates(tmp_path / "rates").rate_bps(sending()) is None


@needs_root
@needs_ebpf
def test_all_laws_share_the_map_that_the_host_agent_writes(pins):
    laws, commands = Laws(pins / "rates"), []
    laws.load("reno")
    try:
        host, sampler = ExpectedRates(pins / "rates"), ExpectedRates(pins / "rates")
        with shell.journal_to(lambda _at, argv, _stdin: commands.append(argv)):
            host.set_rate(1, LOCAL, REMOTE, RATE_BPS)
        laws.load("cubic", "wvegas")
        assert sampler.rate_bps(sending()) == RATE_BPS
        assert sampler.rate_bps(sending(REMOTE, LOCAL)) is None
        assert host.is_set(sending(), RATE_BPS)
        assert not host.is_set(sending(), None)
        host.set_rate(1, LOCAL, REMOTE, None)
        assert sampler.rate_bps(sending()) is None
        assert commands[0][:5] == ["bpftool", "map", "update", "pinned", str(pins / "rates")]
    finally:
        laws.close()


@needs_root
@needs_ebpf
def test_a_host_writes_the_commanded_rate_and_reports_it(pins, monkeypatch):
    found = SimpleNamespace(sockets=lambda: [sending()])
    monkeypatch.setattr(netlink, "inside", lambda pid, make: make())
    monkeypatch.setattr(tcp_sockets, "Diagnosis", lambda: found)
    laws = Laws(pins / "rates")
    laws.load("cubic")
    try:
        server = ControlledHost("srv1", HostSettings(7, False, {}), ExpectedRates(pins / "rates"))
        for seq, (expected_mbps, reported) in enumerate([(4.5, 4.5), (2.0, 2.0), (0, None)]):
            change = SubflowChange("10.0.0.1:5001", "10.1.0.3:40112", expected_mbps=expected_mbps)
            server.obey(HostCommand(seq, "srv1", "t", (change,)))
            assert server.report(seq, {}).subflows[0].expected_mbps == reported
    finally:
        laws.close()
