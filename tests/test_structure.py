"""The structure of the code: no import circles, imports point down, short functions, few untyped
dictionaries.

Every import counts: at the top of a file, inside a function, or for type checking only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[1]
LAYERS = (  # lowest first; a file imports from its own layer and lower ones
    "controller",
    "controller/pox_ext",
    "lab/__init__.py",
    "lab/errors.py",
    "lab/isolation.py",
    "lab/plain_file.py",
    "lab/sudo.py",
    "lab/installed.py",
    "lab/kit.py",
    "lab/vm_environment.py",
    "lab/dashboard_links.py",
    "lab/inputs.py",
    "lab/user_file.py",
    "lab/congestion.py",
    "lab/radio",
    "lab/topologies",
    "lab/frame.py",
    "lab/summaries.py",
    "lab/noticed.py",
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
    "lab/harm",
    "lab/worksheets",
    "lab/classroom",
    "lab/cli",
    "lab/__main__.py",
    "dashboard/base",
    "dashboard",
    "vm",
    "papers",
    "bench",
)
EDGES = {  # files that read and write text and JSON; untyped dictionaries are allowed there
    "dashboard/": "HTTP",
    "lab/cli/": "printed rows and JSON",
    "lab/scenario/schema.py": "YAML before it is checked",
    "lab/scenario/loading.py": "YAML before it is checked",
    "lab/scenario/yaml_text.py": "YAML before it is checked",
    "lab/scenario/catalogue.py": "rows of `list` and of HTTP",
    "lab/run/result.py": "result.json",
    "lab/metrics.py": "result.json, and declarations in a manifest",
    "lab/worksheets/drafting.py": "YAML of a worksheet",
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
    "lab/results/documents.py": "result.json and samples of other runs",
    "lab/results/explain/": "rows of the page and events in JSON",
    "lab/results/flips.py": "the flips in result.json",
    "lab/run/flipping.py": "the flips in events.jsonl and result.json",
    "lab/results/store.py": "TinyDB",
    "lab/results/rows.py": "rows of tables with a column for each varied key",
    "lab/harm/": "scenario documents, and lines of JSON",
    "lab/results/packages.py": "a bill of materials in JSON",
    "lab/results/zips/": "JSON-LD, manifests and results of other people",
    "lab/engines/mininet/programs/traffic.py": "messages of a traffic program",
    "lab/topologies/topology.py": "topology.json",
    "lab/topologies/graphml.py": "attributes in GraphML",
    "lab/topologies/miniedit.py": "files of MiniEdit",
    "lab/topologies/mininet_": "options of Mininet's nodes and links",
    "lab/scenario/csv_files.py": "YAML before it is checked",
    "lab/scenario/network_files.py": "YAML before it is checked",
    "lab/scenario/blame.py": "which option an error is about",
    "lab/scenario/other_files.py": "YAML and JSON that is no scenario",
    "controller/decision_log.py": "decisions.jsonl",
    "controller/pox_ext/statistics.py": "TinyDB",
    "lab/engines/mininet/adopt/": "objects of Mininet, and topology.json",
    "lab/engines/mininet/controller_client.py": "messages to POX",
    "lab/engines/mininet/traffic/processes.py": "messages to the traffic programs",
}
BESIDE_ITS_ONLY_USER = {  # files, or folders of such files, and the reason in a few words
    "bench/": "a subject of measurement each",
    "lab/results/zips/": "one step each between run folders and an archive",
    "controller/pox_ext/component.py": "imported after POX has set its path",
    "controller/pox_ext/forwarding.py": "the tables of a bridge",
    "controller/pox_ext/session.py": "the control loop, without POX's options",
    "controller/pox_ext/subflow_lifecycle.py": "when a subflow begins and ends",
    "controller/strategies/": "a strategy, or a step of its algorithm, each",
    "dashboard/app.py": "the application without its server",
    "lab/run/traces.py": "what a trace changes, beside the loop of a run",
    "lab/engines/sim/clients.py": "who asks and answers, beside the loop of a simulation",
    "lab/engines/sim/numba_records.py": "imports numba, so only when code is compiled",
    "dashboard/classroom/app.py": "the application without its server",
    "dashboard/classroom/pages.py": "HTML, beside JSON",
    "dashboard/classroom/serve.py": "the program",
    "dashboard/grids.py": "what runs show over the keys that they vary",
    "dashboard/guard.py": "who may use the lab's page",
    "dashboard/network/clearing.py": "geometry, without networks",
    "dashboard/network/svg.py": "the drawing, without HTTP",
    "dashboard/openapi.py": "the description of the interface",
    "dashboard/pages.py": "HTML, beside JSON",
    "dashboard/serve.py": "the program",
    "dashboard/worksheet_drafts.py": "worksheets from runs, beside the table of addresses",
    "lab/batch/other_settings.py": "what a folder has that is there already",
    "lab/batch/virtual_machine.py": "a run in the VM",
    "lab/classroom/clock.py": "what time it is when somebody sets the clock",
    "lab/cli/": "commands that are imported when they are called",
    "lab/engines/mininet/mobility.py": "walking users",
    "lab/engines/mininet/programs/": "programs of hosts, without the lab's packages",
    "lab/engines/mininet/supervision.py": "programs that end during a run",
    "lab/engines/mininet/telemetry.py": "samples",
    "lab/engines/mininet/watchdog.py": "whether the machine keeps up",
    "lab/engines/sim/core/": "a mechanism of TCP each",
    "lab/engines/sim/observer.py": "what the controller observes",
    "lab/engines/sim/sampler.py": "samples",
    "lab/harm/": "a step of the search each",
    "lab/results/explain/": "a kind of reason each",
    "lab/scenario/blame.py": "which option an error is about",
    "lab/scenario/other_files.py": "files that are no scenarios",
    "lab/scenario/csv_files.py": "CSV files",
    "lab/topologies/": "a kind of topology each",
    "papers/": "a paper, a page or a command each",
    "vm/": "a part of the machinery each",
}
MAX_UNTYPED = 60
MAX_MODULE_LINES = 800
MAX_FUNCTION_LINES = 60
P90_FUNCTION_LINES = 20


@cache
def modules() -> dict[str, Path]:
    """Files by dotted module name."""
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
    """Modules of the project that a file imports."""
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
    """An edge leads from a module to one that it imports."""
    graph = nx.DiGraph()
    graph.add_nodes_from(modules())
    for name, path in modules().items():
        graph.add_edges_from((name, other) for other in imported(path) if other != name)
    return graph


def layer(name: str) -> int:
    """Index in LAYERS; the longest prefix of the path counts."""
    path = modules()[name].relative_to(ROOT).as_posix()
    inside = [each for each in LAYERS if path == each or path.startswith(f"{each}/")]
    assert inside, f"{path} is in no layer"
    return LAYERS.index(max(inside, key=len))


def functions() -> Iterator[tuple[int, str]]:
    """(lines, place) of each function."""
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


def test_a_file_beside_its_only_user_has_a_reason():
    graph, found = imports(), set()
    for name, path in modules().items():
        users = list(graph.predecessors(name))
        if len(users) == 1 and modules()[users[0]].parent == path.parent:
            found.add(path.relative_to(ROOT).as_posix())
    reasons = {
        file: next((each for each in BESIDE_ITS_ONLY_USER if file.startswith(each)), None)
        for file in found
    }
    assert [file for file, reason in sorted(reasons.items()) if reason is None] == []
    assert set(BESIDE_ITS_ONLY_USER) == set(reasons.values()), "a reason without a file: remove it"
