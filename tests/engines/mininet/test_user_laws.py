"""A congestion control in a user's C file: its name, its compilation, its registration."""

import shutil
from pathlib import Path

import pytest
from machine import needs_root

from lab.engines.mininet import ebpf, in_vm
from lab.engines.mininet.ebpf import build, load
from lab.engines.mininet.machine import vm_kernel
from lab.errors import LabError, RequestError

SCALABLE = Path(__file__).resolve().parents[2] / "emulation" / "scalable.c"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ENDLESS = """#include "coupled.h"
LAW s64 increase(const struct law_view *view)
{
	s64 sum = 0;
	for (u32 n = 0; n != view->path[0].window; n++)
		sum += view->path[n].window;
	return sum;
}
LAW u32 after_loss(const struct law_view *view) { return 1; }
CONGESTION_CONTROL(bpf_endless);
"""
needs_ebpf = pytest.mark.skipif(
    build.lacking() != [] or not (shutil.which("clang") and shutil.which("bpftool")),
    reason="this machine cannot compile eBPF laws. Type: ./run_lab.sh setup-emulation",
)


@pytest.fixture(autouse=True)
def own_registry(tmp_path, monkeypatch):
    monkeypatch.setattr(ebpf, "_registered", {})
    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))


def registered(path):
    law = ebpf.user_law(path)
    ebpf.register(law)
    return law


def copy(folder, text=None):
    file = folder / "scalable.c"
    file.write_text(SCALABLE.read_text() if text is None else text)
    return file


def test_a_registered_law_has_a_name_in_the_kernel_and_one_in_scenarios():
    assert ebpf.kernel_name("scalable") == "scalable"
    assert registered(SCALABLE).name == "scalable"
    assert ebpf.kernel_name("scalable") == "bpf_scalable"
    assert ebpf.our_name("bpf_scalable") == "scalable"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("scalable.py", "not a C file"),
        ("scalable_tcp.c", "12 characters, and the kernel takes at most 11"),
        ("2fast.c", "cannot be a name"),
        ("lia.c", "built in"),
        ("reno.c", "built in"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(tmp_path, name, complaint):
    (tmp_path / name).touch()
    with pytest.raises(RequestError, match=complaint):
        ebpf.user_law(tmp_path / name)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(RequestError, match="there is no such file"):
        ebpf.user_law(tmp_path / "mine.c")


def test_a_second_file_of_the_same_name_is_refused(tmp_path):
    registered(SCALABLE)
    registered(SCALABLE)
    with pytest.raises(RequestError, match=f"'scalable' is already {SCALABLE}"):
        registered(copy(tmp_path))


@needs_ebpf
def test_it_is_compiled_once_per_source(tmp_path):
    file = copy(tmp_path)
    registered(file)
    first = build.require(["scalable", "reno"])
    assert build.require(["scalable"]) == first
    file.write_text(file.read_text().replace("100", "50"))
    assert build.require(["scalable"])["scalable"] == first["scalable"]  # what was registered
    registered(file)
    assert build.require(["scalable"]) != first
    assert first["scalable"].exists()


@needs_ebpf
def test_an_error_names_file_and_line(tmp_path):
    file = copy(tmp_path, SCALABLE.read_text().replace("ONE_PACKET", "ONE_PACKAGE"))
    registered(file)
    with pytest.raises(RequestError, match=rf"{file}:10:\d+: error: .*ONE_PACKAGE"):
        build.require(["scalable"])


@needs_ebpf
def test_a_file_beside_it_cannot_be_included(tmp_path):
    (tmp_path / "mine.h").touch()
    registered(copy(tmp_path, f'#include "mine.h"\n{SCALABLE.read_text()}'))
    with pytest.raises(
        RequestError, match=r"scalable\.c:1:\d+: fatal error: 'mine.h' file not found"
    ):
        build.require(["scalable"])


@needs_ebpf
def test_a_file_that_registers_another_name_is_refused(tmp_path):
    registered(copy(tmp_path, SCALABLE.read_text().replace("bpf_scalable", "bpf_other")))
    with pytest.raises(RequestError, match=r"End the file with CONGESTION_CONTROL\(bpf_scalable\)"):
        build.require(["scalable"])


def test_the_vms_kernel_has_every_registered_law(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(vm_kernel, "find", lambda: tmp_path / "vmlinuz-6.12.1")
    monkeypatch.setattr(build, "require", lambda *arguments: compiled.append(arguments))
    registered(SCALABLE)
    in_vm.require(["olia"])
    types = tmp_path / "types-6.12.1"
    assert compiled == [(["olia", "scalable"], types, False)]
    in_vm.require(["olia"], by_window=True)
    wanted, *others = compiled[1]
    assert {"olia", "scalable", "reno", "cubic"} < set(wanted)  # a change may select each of them
    assert others == [types, True]


@needs_root
@needs_ebpf
def test_this_kernel_loads_it():
    registered(SCALABLE)
    laws = load.Laws()
    laws.load("scalable")
    assert "bpf_scalable" in AVAILABLE.read_text().split()
    laws.close()
    assert "bpf_scalable" not in AVAILABLE.read_text().split()


@needs_root
@needs_ebpf
def test_a_program_that_the_verifier_refuses_is_reported_with_its_line(tmp_path, capfd):
    (tmp_path / "endless.c").write_text(ENDLESS)
    registered(tmp_path / "endless.c")
    with pytest.raises(
        LabError,
        match=r"load bpf_endless .*endless\.c\): .*verifier refuses .*window; @ endless\.c:6`: R",
    ):
        load.Laws().load("endless")
    assert "libbpf" not in capfd.readouterr().err


def test_without_a_verifier_log_there_is_no_verdict():
    assert load.verdict("libbpf: map 'x': failed\n") == ""
