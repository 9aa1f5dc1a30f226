"""The golden set: a digest of each field of simulated runs, which shows what a change alters.

    python tests/golden/record.py record FILE [CASE...]     run every case, write the digests
    python tests/golden/record.py compare FILE [CASE...]    run them, list each field that differs

golden.json has every scenario with several seeds, every congestion control and every packet
scheduler, at `rate_scale` 1. README.md lists the fields altered on purpose since it was recorded.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LAWS = ("reno", "cubic", "lia", "olia", "balia", "wvegas")
SCHEDULERS = ("lowest_rtt", "linux", "round_robin", "redundant")
STRATEGIES = {  # other strategies than the scenario's own that act on it
    "campus": (
        "meter_throttling",
        "expected_throughput",
        "subflow_selection",
        "loss_aware",
        "disjoint",
    ),
    "pooling": ("expected_throughput",),
    "collision_between": ("expected_throughput", "disjoint"),
    "testbed_wifi_lte": ("meter_throttling",),
    "thirty_users": ("meter_throttling",),
    "uneven_paths": ("optimum",),
}
WITH_CELL = "campus", "wifi_walk"  # recorded when `topology.air` was `cell` by default
EXTRA = {
    "penalisation": (
        "testbed_wifi_lte",
        "--set",
        "multipath.penalisation=true",
        "--set",
        "multipath.receive_buffer_kb=200",
    ),
    "window": (
        "pooling",
        "--strategy",
        "expected_throughput",
        "--set",
        "multipath.expected_by=window",
        "--cc",
        "balia",
    ),
    "drafts": ("shared_pipe", "--cc", "olia", "--set", "multipath.olia_metric=draft"),
    "uploads": ("thirty_users", "--set", "traffic_direction=up", "--duration", "20"),
    "udp": (
        "testbed_wifi_lte",
        "--set",
        "traffic=[{user: all, kind: udp, rate_mbps: 8}]",
        "--duration",
        "15",
    ),
    "on_off": (
        "two_paths",
        "--set",
        "traffic=[{user: ue1, kind: on_off, rate_mbps: 20, direction: up}]",
    ),
    "files": ("rat_setup_1", "--set", "traffic_parallel=3", "--set", "traffic_volume_mb=2"),
    "dcf_walk": ("wifi_walk",),
    "dcf_campus": ("campus", "--duration", "20", "--strategy", "meter_throttling"),
    "dcf_uploads": (
        "thirty_users",
        "--set",
        "topology.air=dcf",
        "--set",
        "traffic_direction=up",
        "--duration",
        "20",
    ),
    "dcf_medium": ("rat_setup_3", "--set", "topology.air=dcf", "--duration", "20"),
}
INTENDED = (  # fields altered on purpose since the recording; README.md has the reasons
    "result.schema",
    "result.convergence_s",
    "samples.link.*.mbps",
    "samples.link.*.backlog",
    "samples.link.*.loss",
)
PER_ID = (
    "ap",
    "link",
    "user",
    "sf",
    "aps",
    "links",
    "users",
    "subflows",
    "tiers",
    "by_ap",
)  # their values are objects with an ID as key


def cases() -> dict[str, list[str]]:
    """Command-line arguments of each case."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "scenarios").glob("*.yaml")):
        name = path.stem
        usual = [name, *(["--set", "topology.air=cell"] if name in WITH_CELL else [])]
        found |= {f"{name}-seed{n}": [*usual, "--seed", str(n)] for n in (1, 2, 3)}
        short = [*usual, "--duration", "12", "--seed", "4"]
        found |= {f"{name}-{law}": [*short, "--cc", law] for law in LAWS}
        found |= {
            f"{name}-{each}": [*short, "--set", f"multipath.scheduler={each}"]
            for each in SCHEDULERS
        }
        found |= {
            f"{name}-{each}": [*short, "--strategy", each] for each in STRATEGIES.get(name, ())
        }
    found |= {
        f"{each.stem}-seed1": [each.stem] for each in (ROOT / "scenarios" / "field").glob("*.yaml")
    }
    return found | {f"extra-{name}": list(argv) for name, argv in EXTRA.items()}


def run(argv: list[str]) -> Path | str:
    """Folder of the finished run, or "exit N" if the command failed."""
    folder = Path(tempfile.mkdtemp(prefix="golden-")) / "run"
    command = [
        sys.executable,
        "-m",
        "lab",
        "run",
        *argv,
        "--engine",
        "sim",
        "--set",
        "rate_scale=1",
    ]
    done = subprocess.run(
        [*command, "--quiet", "--out", str(folder)], cwd=ROOT, capture_output=True, text=True
    )
    return folder if done.returncode == 0 else f"exit {done.returncode}"


def fields(folder: Path) -> dict[str, str]:
    """Digest of each field of samples.jsonl and of each number in result.json."""
    found: dict[str, Any] = {}
    for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        for name, where, value in leaves(json.loads(line), "samples"):
            found.setdefault(name, hashlib.sha256()).update(f"{where}={value!r}\n".encode())
    for name, where, value in leaves(
        json.loads((folder / "result.json").read_text(encoding="utf-8")), "result"
    ):
        if not isinstance(value, str):
            found.setdefault(name, hashlib.sha256()).update(f"{where}={value!r}\n".encode())
    return {name: digest.hexdigest()[:8] for name, digest in sorted(found.items())}


def leaves(
    value: Any, name: str, where: str = "", per_id: bool = False
) -> Iterator[tuple[str, str, Any]]:
    """(field without IDs and indices, full path, value) of each leaf of a JSON document."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(
                each,
                f"{name}.*" if per_id else f"{name}.{key}",
                f"{where}.{key}",
                key in PER_ID and not per_id,
            )
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaves(each, f"{name}[]", f"{where}.{number}")
    else:
        yield name, where, value


def digests(names: list[str]) -> dict[str, Any]:
    """Digests of each case's fields; two cases run at a time."""

    def one(name: str) -> Any:
        folder = run(cases()[name])
        if isinstance(folder, str):
            return folder
        found = fields(folder)
        shutil.rmtree(folder.parent)
        return found

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))


def packed(found: dict[str, Any]) -> str:
    """Digests as text: the names of the fields once, then a line of digests for each case."""
    columns = sorted({field for each in found.values() if isinstance(each, dict) for field in each})
    rows = {
        name: (
            each if isinstance(each, str) else " ".join(each.get(column, "-") for column in columns)
        )
        for name, each in found.items()
    }
    return json.dumps({"columns": columns, "cases": rows}, indent=0) + "\n"


def unpacked(text: str) -> dict[str, Any]:
    """Inverse of `packed`."""
    read = json.loads(text)

    def row(line: str) -> Any:
        if line.startswith("exit"):
            return line
        return {
            field: digest
            for field, digest in zip(read["columns"], line.split(), strict=True)
            if digest != "-"
        }

    return {name: row(line) for name, line in read["cases"].items()}


def differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(case, field) of each recorded value that has changed; new fields do not count."""
    for name, then in before.items():
        now = after[name]
        if isinstance(then, str) or isinstance(now, str):
            if then != now:
                yield name, "(status)"
            continue
        yield from ((name, field) for field, digest in then.items() if now.get(field) != digest)


def main(verb: str, file: str, *names: str) -> int:
    """Exit code: 1 if `compare` found an unintended difference."""
    path = Path(file)
    if verb == "record":
        kept = unpacked(path.read_text(encoding="utf-8")) if names else {}
        path.write_text(packed(kept | digests(list(names or cases()))), encoding="utf-8")
        return 0
    before = unpacked(path.read_text(encoding="utf-8"))
    chosen = {name: before[name] for name in names or before}
    found = list(differences(chosen, digests(list(chosen))))
    for name, field in found:
        print(name, field)
    print(f"{len(chosen)} cases, {len({name for name, _ in found})} differ")
    for field, count in Counter(field for _, field in found).most_common():
        print(f"  {field}: {count} cases")
    return 1 if any(field not in INTENDED for _, field in found) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
