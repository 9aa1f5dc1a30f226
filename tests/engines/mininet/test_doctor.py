"""The table and the verdicts of `doctor` for several kinds of machines."""

import json

import pytest

from lab.engines.mininet.install import doctor
from lab.engines.mininet.install.doctor import Probe, facts, require_native, verdicts
from lab.errors import MachineLacks


def machine(**answers):
    """A machine that has everything but what `answers` change."""
    return Probe(
        **{
            "root": lambda: True,
            "program": lambda name: True,
            "python": lambda name: True,
            "module": lambda name: True,
            "mptcp": lambda: True,
            "upstream": lambda upstream: True,
            "hwsim_mgmt": lambda: True,
            "vm_kernel_version": lambda: "6.12.1",
            "kvm": lambda: True,
            "laws_lack": list,
            "laws_in_vm_lack": list,
            "cc_modules_lack": lambda names: [],
        }
        | answers
    )


CLOUD = machine(module=lambda name: name in ("sch_htb", "veth"), kvm=lambda: False)
STUDENT = machine(root=lambda: False)
BARE = machine(
    program=lambda name: False,
    upstream=lambda upstream: False,
    python=lambda name: False,
    vm_kernel_version=lambda: None,
    kvm=lambda: None,
)


@pytest.mark.parametrize(
    ("probe", "natively", "in_the_vm"),
    [
        (machine(), True, True),
        (CLOUD, False, True),
        (STUDENT, False, True),
        (BARE, False, False),
        (machine(vm_kernel_version=lambda: None), True, False),
    ],
)
def test_the_three_modes(probe, natively, in_the_vm):
    assert [mode.possible for mode in verdicts(facts(probe))] == [True, natively, in_the_vm]
    assert doctor.main(probe=probe) == (0 if natively or in_the_vm else 3)


def test_the_verdict_names_what_is_missing():
    lines = list(map(str, verdicts(facts(CLOUD))))
    assert lines[0] == "embedded engine: yes"
    assert lines[1].startswith(
        "emulation natively: no, missing: module openvswitch, module sch_netem"
    )
    assert "veth" not in lines[1]
    assert lines[2] == "emulation in the VM: yes"


def test_an_optional_part_is_not_required():
    without = machine(upstream=lambda upstream: not upstream.optional, kvm=lambda: None)
    assert all(mode.possible for mode in verdicts(facts(without)))


def test_everything_missing_has_a_line_to_type(capsys):
    assert doctor.main(probe=BARE) == 3
    table = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert all(
        "Try" in row or "./run_lab.sh" in row or "sudo apt install" in row or "nothing to do" in row
        for row in table
        if "  no  " in row
    )
    assert any("sudo apt install openvswitch-switch" in row for row in table)


def test_json_has_the_same_content(capsys):
    doctor.main(json=True, probe=CLOUD)
    document = json.loads(capsys.readouterr().out)
    assert [mode["possible"] for mode in document["verdicts"]] == [True, False, True]
    present = {fact["name"]: fact["present"] for fact in document["facts"]}
    assert present["module sch_htb"] is True


def test_a_native_start_is_refused_with_the_reason():
    require_native(machine())
    with pytest.raises(MachineLacks, match=r"lacks module openvswitch, .*--vm"):
        require_native(CLOUD)


def test_this_machine_is_examined(capsys):
    assert doctor.main() in (0, 3)
    assert "embedded engine: yes" in capsys.readouterr().out
