"""The structure: no import circle, imports point down, short functions, few dictionaries without a type.

Every import counts: at the top of a file, inside a function, and for type checking only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (  # from low to high: a file imports from its own layer and from layers before it
    "controller",
    "controller/pox_ext",
    "lab/__init__.py",
    "lab/errors.py",
    "lab/isolation.py",
    "lab/plain_file.py",
    "lab/sudo.py",
    "lab/vm_environment.py",
    "lab/user_file.py",
    "lab/congestion.py",
    "lab/radio",
    "lab/topologies",
    "lab/frame.py",
    "lab/summaries.py",
    "lab/metrics.py",
    "lab/extensions.py",
    "lab/scenario",
    "lab/run",
    "lab/engines/sim/core",
    "lab/engines/sim",
    "lab/engines/mininet/machine",
    "lab/engines/mininet/kernel",
    "lab/engines/mininet/ebpf",
    "lab/engines/mininet/programs",
    "lab/engines/mininet/network",
    "lab/engines/mininet/traffic",
    "lab/engines/mininet/commands",
    "lab/engines/mininet/in_vm.py",
    "lab/engines/mininet/install",
    "lab/engines/mininet",
    "lab/engines",
    "lab/batch",
    "lab/results",
    "lab/worksheets",
    "lab/classroom",
    "lab/cli",
    "lab/__main__.py",
    "dashboard",
    "vm",
    "papers",
    "bench",
)
EDGES = {  # where text and JSON come in and go out: dictionaries of anything are allowed there
    "dashboard/": "HTTP",
    "lab/cli/": "printed rows and JSON",
    "lab/scenario/checking.py": "YAML before it is checked",
    "lab/scenario/loading.py": "YAML before it is checked",
    "lab/scenario/overrides.py": "YAML before it is checked",
    "lab/scenario/yaml_text.py": "YAML before it is checked",
    "lab/scenario/catalogue.py": "rows of `list` and of HTTP",
    "lab/run/result.py": "result.json",
    "lab/metrics.py": "result.json, and declarations in a manifest",
    "lab/worksheets/evaluation.py": "result.json, samples and events",
    "lab/worksheets/planning.py": "YAML values that students may choose",
    "bench/classes.py": "HTTP",
    "lab/classroom/": "lines of the journal, and what HTTP answers",
    "controller/bounded_json.py": "JSON",
    "controller/agent_messages.py": "datagrams",
    "controller/datagrams.py": "datagrams",
    "lab/frame.py": "lines of samples.jsonl",
    "lab/run/report.py": "result.json",
    "lab/run/recorder.py": "the files of a run folder",
    "lab/run/reading.py": "the files of a run folder",
    "lab/run/replay.py": "messages in events.jsonl",
    "lab/run/manifest.py": "manifest.json",
    "lab/run/inbox.py": "files in the inbox",
    "lab/results/documents.py": "result.json of other runs",
    "lab/results/figures.py": "result.json and samples",
    "lab/results/explain/": "rows of the page and events in JSON",
    "lab/results/flips.py": "the flips in result.json",
    "lab/run/flipping.py": "the flips in events.jsonl and result.json",
    "lab/results/store.py": "TinyDB",
    "lab/results/packages.py": "a bill of materials in JSON",
    "lab/engines/mininet/programs/traffic.py": "messages of a traffic program",
    "lab/topologies/topology_file.py": "topology.json",
    "controller/decision_log.py": "decisions.jsonl",
    "controller/pox_ext/statistics.py": "TinyDB",
    "lab/engines/mininet/controller_client.py": "messages to POX",
    "lab/engines/mininet/traffic/processes.py": "messages to the traffic programs",
}
MAX_UNTYPED = 60
MAX_MODULE_LINES = 800
MAX_FUNCTION_LINES = 60
P90_FUNCTION_LINES = 20


@cache
def modules() -> dict[str, Path]:
    """Return every module of the project by its dotted name."""
    found = {}
    for top in ("controller", "lab", "dashboard", "papers", "bench", "vm"):
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Yield each module of the project that a file names in an import."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                name = whole if whole in modules() else node.module or ""
                if name in modules():
                    yield name


@cache
def imports() -> nx.DiGraph:
    """Return the graph of imports: an edge leads from a file to one that it imports."""
    graph = nx.DiGraph()
    graph.add_nodes_from(modules())
    for name, path in modules().items():
        graph.add_edges_from((name, other) for other in imported(path) if other != name)
    return graph


def layer(name: str) -> int:
    """Return the number of the layer in which a module is."""
    path = modules()[name].relative_to(ROOT).as_posix()
    inside = [each for each in LAYERS if path == each or path.startswith(f"{each}/")]
    assert inside, f"{path} is in no layer"
    return LAYERS.index(max(inside, key=len))


def functions() -> Iterator[tuple[int, str]]:
    """Yield length in lines and place of each function."""
    for path in modules().values():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                where = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                yield node.end_lineno - node.lineno + 1, where


def test_there_is_no_import_circle():
    circles = [
        sorted(each) for each in nx.strongly_connected_components(imports()) if len(each) > 1
    ]
    assert not circles


def test_imports_point_down():
    wrong = [f"{a} imports {b}" for a, b in imports().edges if layer(b) > layer(a)]
    assert not wrong, "\n".join(sorted(wrong))


def test_the_core_of_the_simulator_imports_nothing_outside_itself():
    core = "lab.engines.sim.core"
    wrong = [
        f"{a} imports {b}"
        for a, b in imports().edges
        if a.startswith(core) and not b.startswith(core)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_library_imports_the_command_line():
    wrong = [
        f"{a} imports {b}"
        for a, b in imports().edges
        if b.startswith("lab.cli") and not a.startswith(("lab.cli", "lab.__main__", "papers."))
    ]
    assert not wrong, "\n".join(wrong)


def test_dictionaries_of_anything_are_rare_outside_the_edges():
    found = {}
    for path in modules().values():
        place = path.relative_to(ROOT).as_posix()
        if not place.startswith(tuple(EDGES)):
            text = path.read_text(encoding="utf-8")
            found[place] = len(re.findall(r"(?:dict|Mapping)\[str, (?:Any|object)\]", text))
    listed = "\n".join(f"{count} {place}" for place, count in sorted(found.items()) if count)
    assert sum(found.values()) < MAX_UNTYPED, listed


def test_functions_are_short():
    lengths = sorted(functions())
    assert lengths[-1][0] <= MAX_FUNCTION_LINES, lengths[-1]
    assert lengths[int(0.9 * len(lengths))][0] <= P90_FUNCTION_LINES


def test_modules_are_short():
    paths = [*modules().values(), *(ROOT / "tests").rglob("*.py")]
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    long = {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > MAX_MODULE_LINES}
    assert not long
