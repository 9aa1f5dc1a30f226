"""A file that is no scenario, and several mistakes in one file: what the errors say."""

from __future__ import annotations

import json
import random

import pytest
import yaml
from users_files import KNOWN, TOPOLOGY, _only_built_in, lab, refused

from lab.errors import RequestError
from lab.scenario import schema
from lab.scenario.loading import FOLDER, load

__all__ = ["_only_built_in"]

MININET = '"""A script"""\nfrom mininet.net import Mininet\nnet = Mininet()\nraise SystemExit\n'
DRAWING = json.dumps({"hosts": [], "switches": [], "links": [], "version": "2"})
DESCRIPTION = json.dumps({"switches": {}, "hosts": {}, "trunks": []})
CONTAINERLAB = "name: a\ntopology: {nodes: {r: {}}, links: [{endpoints: [r:eth1, s:eth1]}]}\n"
SHEET = "title: T\ngoals: [a]\nsteps: []\n"


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        ("a.py", MININET, "a Mininet script. For its topology, write a scenario file with"),
        (
            "a.py",
            MININET,
            "'topology: {mininet: a.py, topo: NAME, users: [HOST], servers: [HOST]}'",
        ),
        ("a.py", f"{MININET}print 'for Python 2'\n", "a Mininet script. For its topology"),
        ("a.py", TOPOLOGY, "it is Python: a topology: write a scenario file"),
        ("a.py", KNOWN["keep_all.py"], "a strategy: give it by --strategy"),
        ("a.py", KNOWN["scalable.py"], "a congestion control: give it by --cc"),
        ("a.py", "print('hello')\n", "it is Python: a scenario is YAML"),
        ("a.c", "int x;\n", "it is a congestion control"),
        ("a.mn", DRAWING, "it is a drawing of MiniEdit"),
        ("a.json", DESCRIPTION, "it is a topology file for the controller"),
        ("a.json", '{"run_id": "r", "schema": 2, "aps": {}}', "Give the run's folder"),
        ("a.json", json.dumps(dict.fromkeys("abcdefghij", 1)), "it is JSON with the keys a, b, c"),
        ("a.graphml", "<?xml version='1.0'?><graphml/>", "it is GraphML"),
        ("a.xml", "<?xml version='1.0'?>\n<svg/>", "it is XML, and a scenario is YAML"),
        ("a.yaml", SHEET, "it is a worksheet. Type ./run_lab.sh worksheet check"),
    ],
)
def test_a_file_that_is_no_scenario_is_named(name, text, wrong, tmp_path):
    (tmp_path / name).write_text(text)
    said = lab("check", tmp_path / name)
    assert said.exit_code == 2
    assert wrong in said.output
    assert f"{name} is no scenario: it is" in said.output
    assert len(said.output.splitlines()) == 1


def test_a_topology_of_containerlab_is_named(tmp_path):
    (tmp_path / "a.yml").write_text(CONTAINERLAB)
    said = lab("check", tmp_path / "a.yml")
    assert (
        "topology: this is a topology of containerlab. Write 'topology: {kind: nod" in said.output
    )
    assert len(said.output.splitlines()) == 1


def test_what_is_no_text_is_one_line(tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"PK\x03\x04")
    said = lab("check", tmp_path / "a.yaml")
    assert "a.yaml: is not YAML: unacceptable character" in said.output
    assert len(said.output.splitlines()) == 1


def test_a_scenario_in_json_is_a_scenario(tmp_path):
    content = yaml.safe_load((FOLDER / "two_paths.yaml").read_text())
    (tmp_path / "mine.json").write_text(json.dumps(content))
    assert load(str(tmp_path / "mine.json")).name == "two_paths"


@pytest.mark.parametrize("seed", range(5))
def test_unknown_keys_of_one_mapping_are_one_line(seed):
    draw = random.Random(seed)
    strange = ["".join(draw.choices("qwxyz", k=8)) for _ in range(draw.randint(2, 20))]
    with pytest.raises(RequestError) as caught:
        schema.validate(schema.Multipath, dict.fromkeys(strange, 1) | {"cc": "raeno"}, "x")
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    (of_keys,) = (each for each in lines if "unknown keys" in each)
    assert of_keys.count("Known keys:") == 1
    assert all(f"'{each}'" in of_keys for each in strange[:6])
    assert ("more." in of_keys) == (len(strange) > 6)


def test_the_same_unknown_key_in_two_entries_is_said_twice(tmp_path):
    said = refused(
        "check", "two_paths", "--set", "traffic=[{user: ue1, kin: 1}, {user: ue1, kin: 1}]"
    )
    assert "traffic[1]: unknown key 'kin' (did you mean 'kind'?)" in said
    assert "traffic[2]: unknown key 'kin'" in said


@pytest.mark.parametrize("wrong", ["[{user: ue1, kind: blk}]", "[{kind: bulk}]", "[1, 2]"])
def test_a_list_with_a_wrong_entry_is_not_called_too_short(wrong):
    said = refused("check", "two_paths", "--set", f"traffic={wrong}")
    assert "entries" not in said
    assert "traffic[1]" in said
    assert "holds 0 entries: write at least 1" in refused(
        "check", "two_paths", "--set", "traffic=[]"
    )
