"""The documentation is true: its blocks run, its links lead somewhere, and its commands, options
and keys exist.

Blocks that begin with ```sh run are run in a copy of the project, and ```sh emulation where the
emulation works. Other blocks are text.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import click
import pytest
from _pytest.mark import ParameterSet
from machine import emulation, needs_emulation

from lab.cli.commands import Beside, cli
from lab.scenario.schema import (
    Event,
    Mobility,
    Multipath,
    Scenario,
    StrategyChoice,
    Traffic,
)

__all__ = ["emulation"]
ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGES.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "scenarios" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
DOOR = re.compile(r"(?:\./run_lab\.sh|python -m lab)(?P<rest>[^`\n|]*)")
CONTEXT = click.Context(cli)
SHELL_VERBS = {"test", "lint", "torture", "fast"}  # of run_lab.sh itself
FOLDERS = tuple(
    f"{each}/"
    for each in (
        *("bench", "controller", "dashboard", "docs", "lab", "papers", "scenarios", "templates"),
        *("tests", "worksheets"),  # `vm` is also a folder of a run
    )
)
EMULATION_S = 900
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(kind: str) -> list[ParameterSet]:
    """Blocks of this kind; page and number are the test's ID."""
    found = []
    for page in PAGES:
        texts = [
            match["text"]
            for match in FENCE.finditer(page.read_text())
            if match["kind"].strip() == kind
        ]
        found += [
            pytest.param(text, id=f"{page.relative_to(ROOT)}-{n}")
            for n, text in enumerate(texts, 1)
        ]
    return found


@pytest.fixture
def copy(tmp_path):
    return project_copy(tmp_path / "a lab")


def project_copy(folder: Path) -> Path:
    """A copy of the project without version control, data and caches; it shares the installed
    packages."""
    shutil.copytree(
        ROOT,
        folder,
        ignore=shutil.ignore_patterns(".git", ".venv", "data", "__pycache__", ".*_cache"),
    )
    if not list((ROOT / ".venv").glob("*.stamp")):
        pytest.skip("runs the commands of a page: start the tests with ./run_lab.sh test")
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def shell(text: str, folder: Path, timeout_s: float) -> str:
    """Run a block. The simulator stays interpreted, because compiling it for each copy takes longer
    than the runs."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["NUMBA_DISABLE_JIT"] = "1"
    # no pipes: programs in the background would keep them open
    with (folder / "printed").open("w+") as printed, (folder / "errors").open("w+") as errors:
        running = subprocess.Popen(
            ["sh", "-euxc", text],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status = running.wait(timeout_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
        printed.seek(0)
        errors.seek(0)
        said = printed.read()
        assert status == 0, said + errors.read()
    return said


BLOCKS = blocks("sh run")
FIRST = [each for each in BLOCKS if each.id.startswith("README")]


@pytest.mark.whole
@pytest.mark.parametrize("block", FIRST)
def test_commands_run(block, copy):
    shell(block, copy, 600)


@pytest.mark.long
@pytest.mark.whole
@pytest.mark.parametrize("block", [each for each in BLOCKS if each not in FIRST])
def test_commands_of_other_pages_run(block, copy):
    shell(block, copy, 600)


def test_something_is_run():
    assert blocks("sh run")
    assert blocks("sh emulation")


class TestEmulation:
    pytestmark = needs_emulation

    @pytest.mark.parametrize("block", blocks("sh emulation"))
    def test_commands_run(self, block, copy):
        shell(block, copy, EMULATION_S)


@each_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{target} is not there"


@each_page
def test_files_that_are_named_exist(page):
    for named in re.findall(r"`([\w./*-]+)`", page.read_text()):
        if named.startswith(FOLDERS):
            named = named.replace("NAME", "*")
            assert list(ROOT.glob(named.rstrip("/"))), f"{named} is not there"


def options(command: click.Command) -> set[str]:
    """Options of a command and of all commands below it."""
    command = command.command() if isinstance(command, Beside) else command
    own = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
    names = command.list_commands(CONTEXT) if isinstance(command, click.Group) else ()
    below = [command.get_command(CONTEXT, name) for name in names]
    return own.union({"--help", "-h"}, *map(options, below))


def component_options() -> set[str]:
    """Parameters of `launch`, from the source of the POX component."""
    tree = ast.parse((ROOT / "controller" / "pox_ext" / "__init__.py").read_text())
    launch = next(
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "launch"
    )
    return {f"--{each.arg}" for each in launch.args.args}


@each_page
def test_verbs_and_their_options_exist(page):
    for match in DOOR.finditer(page.read_text()):
        words = match["rest"].split(" -- ")[0].split("#")[0].split()
        command: click.Command = cli
        if words and words[0] in SHELL_VERBS:
            continue
        while (
            words
            and isinstance(command, click.Group)
            and (found := command.get_command(CONTEXT, words[0].strip(".,:;)")))
        ):
            command = found
            words.pop(0)
        if isinstance(command, click.Group):
            spoken = not words or words[0].startswith(("-", "#")) or words[0][0] in ".,:;)"
            assert spoken or command is not cli, f"'{match[0]}': {words[0]} is no command"
            known = options(cli.get_command(CONTEXT, "up")) if command is cli else options(command)
        else:
            known = options(command)
        for word in words:
            if word.startswith("-"):
                assert word.split("=")[0].strip(".,:;)") in known, (
                    f"'{match[0]}': {word} is no option"
                )


@each_page
def test_options_that_are_named_alone_exist(page):
    known = (
        options(cli) | component_options() | {"--unthreaded-sh", "--require-hashes"}
    )  # of POX, of pip
    for text in re.findall(r"`(--[^`]*)`", page.read_text()):
        for word in text.split():
            if word.startswith("--"):
                assert word.split("=")[0] in known, f"`{text}`: {word} is no option"


def words(text: str) -> set[str]:
    """What stands alone between backquotes and looks like a key."""
    return {word for word in re.findall(r"`([^`]+)`", text) if re.fullmatch(r"[a-z_]+", word)}


def scenario_section() -> str:
    text = (ROOT / "docs" / "formats.md").read_text()
    return text.split("## Scenario files")[1].split("\n## ")[0]


def rows() -> dict[str, str]:
    """Second cell of the table of keys, by key."""
    found = {}
    for line in scenario_section().splitlines():
        cells = line.split("|")
        if line.startswith("| `"):
            found |= dict.fromkeys(words(cells[1]), cells[2])
    return found


def test_every_key_of_a_scenario_is_documented_and_no_other():
    assert set(rows()) == {each.alias or name for name, each in Scenario.model_fields.items()}


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("multipath", Multipath),
        ("strategy", StrategyChoice),
        ("events", Event),
        ("mobility", Mobility),
    ],
)
def test_every_key_of_its_parts_too(key, part):
    assert words(rows()[key]) == set(part.model_fields)


def test_every_key_of_a_flow_too():
    flow = scenario_section().split("A flow:")[1].split("\n\n")[0]
    assert words(flow) == set(Traffic.model_fields)


def test_the_errors_that_the_readme_explains_are_printed():
    """Each text in the first column of the README's table is in the code, except that of `ping`."""
    section = (ROOT / "README.md").read_text().split("## If something goes wrong")[1]
    quoted = re.findall(r"^\| `([^`]+)`", section.split("\n## ")[0], re.MULTILINE)
    gaps = r"\.\.\.|\bN\b|\bRUN\b|(?<=TCP) "
    parts = [part.strip(" :") for text in quoted for part in re.split(gaps, text)]
    texts = [
        node.value
        for path in (ROOT / "lab").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert len(quoted) > 6
    for part in filter(None, parts):
        assert part.startswith("ping:") or any(part in text for text in texts), part


def test_security_md_names_every_security_rule_that_is_off():
    table = (ROOT / "SECURITY.md").read_text().partition("| rule | why |")[2].partition("\n\n")[0]
    off = set(re.findall(r"\bS\d{3}\b", (ROOT / "pyproject.toml").read_text()))
    for part in ("lab", "controller", "dashboard", "bench", "papers", "vm"):
        for path in (ROOT / part).rglob("*.py"):
            for line in re.findall(r"# noqa: ([A-Z0-9, ]+)", path.read_text()):
                off |= set(re.findall(r"\bS\d{3}\b", line))
    assert len(off) > 8
    assert off <= set(re.findall(r"\bS\d{3}\b", table))
