"""Compiling laws for the types of a kernel: requirements, the cache, and errors."""

import os
import subprocess
from pathlib import Path

import pytest
from machine import needs_root

from lab.engines.mininet import ebpf
from lab.engines.mininet.ebpf import LAWS, build, kernel_name, load, our_name
from lab.engines.mininet.machine import shell
from lab.errors import CommandFailed, MachineLacks

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@pytest.fixture
def types(tmp_path):
    """Names of all kernel types that laws need."""
    file = tmp_path / "types"
    file.write_bytes(b"\0" + b"\0".join(name.encode() for name in build.NEEDED) + b"\0")
    return file


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Replace bpftool and clang; the list has the programs that were called."""
    ran = []

    def run(argv, doing, **_):
        ran.append(argv[0])
        if argv[0] == "clang":
            Path(argv[-1]).write_text(" ".join(argv))
        return "struct sock {};"

    monkeypatch.setenv("MULTIPATH_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shell, "run", run)
    return ran


def test_laws_have_another_name_in_the_kernel():
    assert [kernel_name(cc) for cc in ("reno", "olia")] == ["reno", "bpf_olia"]
    assert [our_name(cc) for cc in ("reno", "bpf_olia", "bpf_other")] == [
        "reno",
        "olia",
        "bpf_other",
    ]
    assert all(len(kernel_name(law)) < 16 for law in LAWS)


def test_what_a_kernel_lacks_is_read_from_its_types(types, tmp_path):
    assert build.lacking(types) == []
    types.write_bytes(
        types.read_bytes().replace(b"\0bpf_rdonly_cast\0", b"\0bpf_rdonly_cast_too\0")
    )
    assert build.lacking(types) == ["eBPF that reads the kernel's types"]
    assert build.lacking(tmp_path / "nothing") == ["published types (BTF)"]


def test_a_kernel_that_cannot_run_laws_is_refused_with_what_to_type(tmp_path):
    with pytest.raises(MachineLacks, match=r"run lia: .* lacks published types.*--vm"):
        build.require(["reno", "lia"], tmp_path / "nothing")
    assert build.require(["reno", "cubic"], tmp_path / "nothing") == {}


def test_a_law_is_compiled_once_per_kernel(types, compiler):
    first = build.require(["lia"], types)
    assert compiler == ["bpftool", "clang"]
    assert build.require(["lia"], types) == first
    assert len(compiler) == 2
    types.write_bytes(types.read_bytes() + b"another\0")
    assert build.require(["lia"], types) != first
    assert [path.suffix for path in first["lia"].parent.iterdir()] == [".o", ".o"]


def test_a_changed_source_is_compiled_again(types, compiler, tmp_path, monkeypatch):
    first = build.program("olia", types)
    (tmp_path / "law.h").write_text("// another header")
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    second = build.program("olia", types)
    (tmp_path / "olia.c").write_text("// another law")
    monkeypatch.setattr(ebpf, "SOURCES", tmp_path)
    assert len({first, second, build.program("olia", types)}) == 3


def test_a_compiler_that_fails_is_quoted(types, compiler, monkeypatch):
    def fails(argv, doing, **_):
        raise CommandFailed(doing, argv, 1, "no such header")

    monkeypatch.setattr(shell, "run", fails)
    with pytest.raises(MachineLacks, match=r"compile bpf_olia: .*no such header.*setup-emulation"):
        build.program("olia", types)


@needs_root
@pytest.mark.skipif(build.lacking() != [], reason=f"this kernel lacks {', '.join(build.lacking())}")
def test_this_kernel_loads_and_unloads_the_laws():
    laws = load.Laws()
    laws.load("reno", "olia")
    laws.load("olia", "lia")
    offered = AVAILABLE.read_text().split()
    laws.close()
    assert {"bpf_olia", "bpf_lia"} <= set(offered)
    assert not [name for name in AVAILABLE.read_text().split() if name.startswith("bpf_")]


@needs_root
@pytest.mark.skipif(build.lacking() != [], reason=f"this kernel lacks {', '.join(build.lacking())}")
def test_a_process_without_rights_is_refused():
    program = "from lab.engines.mininet.ebpf.load import Laws; Laws().load('lia')"
    argv = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "python3", "-c", program]
    done = subprocess.run(
        argv, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": "."}, check=False
    )
    assert "load bpf_lia" in done.stderr
