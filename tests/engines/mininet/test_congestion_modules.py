"""Congestion controls that are modules of the kernel, on kernels with and without them."""

import pytest
from engines.mininet.test_doctor import machine

from lab.engines.mininet.install import doctor
from lab.engines.mininet.kernel import congestion_modules
from lab.errors import MachineLacks


@pytest.fixture
def kernel(tmp_path):
    """The folder of a kernel's modules, whose index names BBR."""
    (tmp_path / "modules.dep").write_text("kernel/net/ipv4/tcp_bbr.ko.xz:\n")
    return tmp_path


def test_a_kernel_with_the_module(kernel):
    assert congestion_modules.lacking_in(kernel, ["bbr", "cubic"]) == []


def test_a_kernel_with_the_module_built_in(tmp_path):
    (tmp_path / "modules.builtin").write_text("kernel/net/ipv4/tcp_bbr.ko\n")
    assert congestion_modules.lacking_in(tmp_path, ["bbr"]) == []


def test_a_kernel_without_the_module(tmp_path):
    (tmp_path / "modules.dep").write_text("kernel/net/ipv4/tcp_vegas.ko.xz:\n")
    assert congestion_modules.lacking_in(tmp_path, ["bbr", "reno"]) == ["tcp_bbr"]
    assert congestion_modules.lacking_in(tmp_path, ["reno"]) == []


def test_the_running_kernel(tmp_path, monkeypatch):
    known = tmp_path / "available"
    known.write_text("reno cubic bbr\n")
    monkeypatch.setattr(congestion_modules, "AVAILABLE", known)
    monkeypatch.setattr(congestion_modules.shell, "succeeds", lambda argv: False)
    assert congestion_modules.lacking(["bbr"]) == []
    known.write_text("reno cubic\n")
    assert congestion_modules.lacking(["bbr"]) == ["tcp_bbr"]
    with pytest.raises(
        MachineLacks, match=r"use cc bbr: this kernel lacks .*tcp_bbr.*--engine sim"
    ):
        congestion_modules.load(["reno", "bbr"])


def test_the_doctor_names_the_modules():
    facts = {each.name: each for each in doctor.facts(machine(cc_modules_lack=lambda names: names))}
    assert not facts["module tcp_bbr"].present
    assert not facts["module tcp_dctcp"].present
    assert doctor.main(probe=machine(cc_modules_lack=lambda names: names)) == 0
