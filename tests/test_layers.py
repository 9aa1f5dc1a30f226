"""Imports go one way: dashboard -> lab -> controller. papers, bench and vm may import these, and
none of them imports papers, bench or vm."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "controller": {"controller"},
    "lab": {"lab", "controller"},
    "dashboard": {"dashboard", "lab", "controller"},
    # beside the product, which imports none of them
    "vm": {"vm", "lab", "controller"},
    "papers": {"papers", "dashboard", "lab", "controller"},
    "bench": {"bench", "dashboard", "lab", "controller", "vm"},
}
NEVER = {  # folder: modules that it must not use
    "controller": {
        *("flask", "pox"),
        *("time", "datetime", "random", "secrets"),  # strategies see time only in their input
        *(
            "os",
            "io",
            "pathlib",
            "shutil",
            "tempfile",
            "socket",
            "socketserver",
            "select",
            "subprocess",
            "threading",
            "asyncio",
        ),
    },
    "lab/radio": {"os", "pathlib", "socket", "subprocess", "time", "random"},
    "lab": {"flask", "waitress"},
}
BASE = "dashboard.base"
CLASS_MAY_IMPORT = {  # modules of the dashboard beside its base, and why a class needs them
    "dashboard.exports": "a student downloads the own runs",
    "dashboard.flips": "a student changes an own run within the bounds of the worksheet",
    "dashboard.handout": "the instructor prints a worksheet",
    "dashboard.markdown": "the texts of a worksheet",
    "dashboard.network.answers": "the network of a run or of a scenario, after its own check",
    "dashboard.runs": "the child processes of runs",
    "dashboard.state": "whether a run has ended",
    "dashboard.stream": "the samples of a run, after its own check",
    "dashboard.view": "what the page of a run shows",
}
OF_THE_LAB_ALONE = {
    f"dashboard.{name}"
    for name in ("api", "app", "batches", "finished", "guard", "openapi", "pages", "serve")
}
EXEMPT = {"controller": "pox_ext"}  # runs inside POX
MININET = ROOT / "lab" / "engines" / "mininet"
STARTS_PROCESSES = {
    "run",
    "Popen",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "getstatusoutput",
}


def imported(path: Path) -> set[str]:
    """All modules that a file imports, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = ("." * node.level) + (node.module or "")
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_no_arrow_points_back(folder):
    ours = set(MAY_IMPORT)
    for path in files(folder):
        back = {name for name in imported(path) if name.split(".")[0] in ours - MAY_IMPORT[folder]}
        assert not back, f"{path.relative_to(ROOT)} imports {', '.join(sorted(back))}"


@pytest.mark.parametrize("folder", NEVER)
def test_each_layer_keeps_to_its_own_tools(folder):
    for path in files(folder):
        if EXEMPT.get(folder) not in path.relative_to(ROOT / folder).parts:
            wrong = {name for name in imported(path) if name.split(".")[0] in NEVER[folder]}
            assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_the_dashboard_imports_neither_engines_nor_the_command_line():
    for path in files("dashboard"):
        assert not any(name.startswith(("lab.engines", "lab.cli")) for name in imported(path)), path


def modules_of_the_dashboard(path: Path) -> set[str]:
    """Every module of the dashboard that a file imports; `from MODULE import NAME` is MODULE."""
    names = {name for name in imported(path) if name.split(".")[0] == "dashboard"}
    is_file = {name: (ROOT / name.replace(".", "/")).with_suffix(".py").exists() for name in names}
    return {name for name in names if is_file[name]}


def test_the_base_of_the_dashboard_imports_nothing_else_of_it():
    for path in files("dashboard/base"):
        wrong = {n for n in modules_of_the_dashboard(path) if not n.startswith(f"{BASE}.")}
        assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_a_class_imports_of_the_dashboard_only_its_base_and_what_is_listed():
    used = set()
    for path in files("dashboard/classroom"):
        for name in modules_of_the_dashboard(path):
            if not name.startswith((f"{BASE}.", "dashboard.classroom.")):
                assert name in CLASS_MAY_IMPORT, f"{path.relative_to(ROOT)} imports {name}"
                used.add(name)
    assert used == set(CLASS_MAY_IMPORT)
    assert not used & OF_THE_LAB_ALONE


def test_nothing_of_the_dashboard_imports_a_class():
    for path in files("dashboard"):
        if "classroom" not in path.parts:
            wrong = {name for name in imported(path) if name.startswith("dashboard.classroom")}
            assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


@pytest.mark.parametrize(
    ("program", "never"),
    [
        ("dashboard.classroom.serve", OF_THE_LAB_ALONE),
        ("dashboard.serve", {"dashboard.classroom"}),
    ],
)
def test_neither_page_loads_the_other(program, never):
    """What an import brings along counts, too."""
    code = f"import sys, {program}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert program in done.stdout.split()
    assert not never & set(done.stdout.split())


def test_the_brain_opens_no_file():
    for path in files("controller"):
        if "pox_ext" not in path.parts:
            assert not called(path) & {(None, "open"), (None, "print"), (None, "input")}, path


def test_the_simulator_does_not_know_the_emulation():
    for one, other in (("sim", "mininet"), ("mininet", "sim")):
        for path in files(f"lab/engines/{one}"):
            wrong = {name for name in imported(path) if name.startswith(f"lab.engines.{other}")}
            assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))}"


def test_a_simulation_loads_nothing_of_the_emulation(tmp_path):
    program = f"""
import sys
from lab.cli.commands import cli
words = ["run", "testbed_wifi_lte", "--duration", "1", "--quiet", "--out", {str(tmp_path / "run")!r}]
cli(words, standalone_mode=False)
print([name for name in sys.modules if name.startswith("lab.engines.mininet")])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


def test_only_one_module_imports_mininet():
    for path in files("lab"):
        if {name.split(".")[0] for name in imported(path)} & {"mn_wifi", "mininet"}:
            assert path == MININET / "network" / "nodes.py", path


def test_only_one_module_of_the_emulation_starts_processes():
    for path in (*MININET.rglob("*.py"), *files("vm")):
        wrong = {
            name
            for owner, name in called(path)
            if (owner == "subprocess" and name in STARTS_PROCESSES) or is_os(owner, name)
        }
        assert path.name == "shell.py" or not wrong, (
            f"{path.relative_to(ROOT)} calls {', '.join(sorted(wrong))}: use shell.py"
        )
    assert ("subprocess", "Popen") in called(MININET / "machine" / "shell.py")


@pytest.mark.parametrize("program", ["ap_agent", "traffic", "host_agent"])
def test_programs_of_the_emulation_start_without_packages(program):
    """They start as `python -SE`: looking for packages takes long in the VM."""
    done = subprocess.run(
        [sys.executable, "-SE", "-c", f"import lab.engines.mininet.programs.{program}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def is_os(owner: str | None, name: str) -> bool:
    return owner == "os" and name.startswith(("system", "popen", "exec", "spawn", "posix_spawn"))


def called(path: Path) -> set[tuple[str | None, str]]:
    """Calls in a file: `name(...)` as (None, name), `owner.name(...)` as (owner, name)."""
    found: set[tuple[str | None, str]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add((None, node.func.id))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
        ):
            found.add((node.func.value.id, node.func.attr))
    return found


# Times of day that are compared, each with the reason. Everything else that waits or measures goes
# by elapsed time, because somebody may set the clock.
TIMES_OF_DAY = {
    "lab/run/process.py": "the age of a file; a time in the future counts as old",
    "lab/results/store.py": "the age of a folder; a time in the future counts as old",
    "vm/snapshot.py": "the age of a file; a time in the future counts as old",
    "lab/classroom/clock.py": "it is what finds out that the clock was set",
    "lab/engines/mininet/programs/call.py": "the age of a datagram that the kernel has stamped",
    "lab/engines/mininet/engine.py": "the start of the run in the time of day, found anew each time",
    "bench/classes.py": "page and server compare times of day, within minutes",
}


def test_no_duration_is_measured_by_the_time_of_day():
    def is_now(node):
        return ast.unparse(node).startswith(("time.time()", "time.time_ns()", "datetime.now()"))

    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("lab", "controller", "dashboard", "vm", "papers", "bench")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.BinOp | ast.Compare)
        and any(is_now(each) for each in ast.iter_child_nodes(node))
    }
    assert found <= TIMES_OF_DAY.keys(), sorted(found - TIMES_OF_DAY.keys())
