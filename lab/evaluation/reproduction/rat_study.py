"""The RAT study: Cubic, LIA and OLIA over LTE and WiFi. It gives no throughput, so every claim is an order or a trend. Pure.

Of a node, T is its volume over the time until all of it has arrived; W and L are the parts of T by WiFi and by LTE (of
Setups II and III, by the path that begins on LTE); means over the five nodes. Cells of the study are (Setup, standard, connections per node, MB, KB
of receive buffer, interfaces, law).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from lab.evaluation.reproduction.base import (
    Case,
    Claim,
    Found,
    Numbers,
    Operator,
    Paper,
    Relation,
    Value,
    claims_table,
    mean,
    score,
)
from lab.results.tables import markdown_table

C, A, O = "cubic", "lia", "olia"  # noqa: E741 - the study's own letters
LAWS = (C, A, O)
LETTERS = {C: "C", A: "A", O: "O"}
CONNECTIONS = (1, 5, 10)
BUFFERS_KB = (640, 800, 1000, 1200)
FIRST_CELL = "wifi1"  # of the senders: whose path it is on goes by WiFi
STANDARDS = ("11a", "11g", "11n5")
ROMAN = {1: "I", 2: "II", 3: "III"}


@dataclass(frozen=True)
class Cell:
    """One experiment of the study."""

    setup: int
    wifi: str
    parallel: int
    volume_mb: int = 15
    buffer_kb: int = 1000
    interfaces: str = "both"
    cc: str = A

    @property
    def about(self) -> str:
        """Everything but the law."""
        only = "" if self.interfaces == "both" else f", {self.interfaces} only"
        return f"Setup {ROMAN[self.setup]}, {self.wifi}, {self.parallel} x, {self.volume_mb} MB, {self.buffer_kb} KB{only}"

    @property
    def name(self) -> str:
        parts = (
            self.setup,
            self.wifi,
            self.parallel,
            self.volume_mb,
            self.buffer_kb,
            self.interfaces,
            self.cc,
        )
        return "-".join(map(str, parts))

    @property
    def case(self) -> Case:
        settings = (
            f"topology.wifi={self.wifi}",
            f"topology.interfaces={self.interfaces}",
            f"traffic_parallel={self.parallel}",
            f"traffic_volume_mb={self.volume_mb}",
            f"multipath.receive_buffer_kb={self.buffer_kb}",
            "sample_interval_s=5",
        )
        return Case(self.name, f"rat_setup_{self.setup}", settings, self.cc)


def measure(case: Case, result: Mapping[str, Any], _folder: Path) -> Numbers:
    """T, W and L of a run in Mb/s."""
    duration_s = result["duration_s"]
    nodes = []
    for user in result["users"]:
        mine = [each for each in result["connections"] if each["user"] == user]
        took_s = max(each["completion_s"] or duration_s for each in mine)
        parts = {True: 0.0, False: 0.0}
        for subflow in (each for connection in mine for each in connection["subflows"]):
            parts[FIRST_CELL in subflow["path"]] += subflow["throughput_mbps"] * duration_s
        sent = sum(each["throughput_mbps"] for each in mine) * duration_s
        part = parts[True] / max(1e-9, sum(parts.values()))
        nodes.append((sent / took_s, part * sent / took_s))
    total, wifi = mean([node for node, _ in nodes]), mean([node for _, node in nodes])
    return {"T": total, "W": wifi, "L": total - wifi}


def _value(cell: Cell, number: str) -> Value:
    """Its title is what the study writes, without what is as in most cells."""
    title = f"{ROMAN[cell.setup]} {'' if cell.wifi == '11n5' else f'{cell.wifi} '}{number}_{LETTERS[cell.cc]}({cell.parallel})"
    title += f"[{cell.volume_mb}]" if cell.volume_mb != 15 else ""
    title += f"{{{cell.buffer_kb}}}" if cell.buffer_kb != 1000 else ""
    return Value(
        cell.name, number, title if cell.interfaces == "both" else f"{title} {cell.interfaces} only"
    )


def _is(
    left: tuple[Cell, str], operator: Operator, right: tuple[Cell, str], times: float = 1.0
) -> Relation:
    return Relation(_value(*left), operator, _value(*right), times)


def _by(base: Cell, cc: str, **changes: Any) -> Cell:
    return replace(base, cc=cc, **changes)


I5, I5A, I5N24 = (
    Cell(1, "11n5", 5),
    Cell(1, "11a", 5, buffer_kb=800),
    Cell(1, "11n24", 5, buffer_kb=800),
)
I5N5 = Cell(1, "11n5", 5, buffer_kb=800)
II5, II5G = Cell(2, "11n5", 5), Cell(2, "11g", 5)
WIFI, LTE = replace(I5, interfaces="wifi"), replace(I5, interfaces="lte")


def _rising(
    base: Cell, number: str, key: str, values: Iterable[int], laws: Iterable[str] = LAWS
) -> tuple[Relation, ...]:
    """The number grows with a parameter, from each value to the next."""
    steps = list(values)
    return tuple(
        _is((_by(base, cc, **{key: more}), number), ">", (_by(base, cc, **{key: less}), number))
        for cc in laws
        for less, more in pairwise(steps)
    )


def _falling(
    base: Cell, number: str, key: str, values: Iterable[int], laws: Iterable[str] = LAWS
) -> tuple[Relation, ...]:
    return _rising(base, number, key, reversed(list(values)), laws)


def _ordered(base: Cell, *laws_and_operators: str, number: str = "T") -> tuple[Relation, ...]:
    """cubic > olia >= lia and the like, of one cell."""
    laws, operators = laws_and_operators[::2], laws_and_operators[1::2]
    chain = zip(laws, operators, laws[1:], strict=False)
    return tuple(
        _is((_by(base, a), number), operator, (_by(base, b), number))  # type: ignore[arg-type]
        for a, operator, b in chain
    )


def _of(
    cells: Iterable[tuple[Cell, Cell]], number: str, operator: Operator = ">"
) -> tuple[Relation, ...]:
    return tuple(_is((a, number), operator, (b, number)) for a, b in cells)


def _gains() -> tuple[Relation, ...]:
    """Both interfaces carry more than either alone, for every buffer, number of connections and volume (LIA)."""
    both = [*(replace(I5, buffer_kb=kb) for kb in BUFFERS_KB), *(replace(I5, parallel=n) for n in (1, 10)),
            *(replace(I5, volume_mb=mb) for mb in (5, 10))]  # fmt: skip
    return _of(
        ((cell, replace(cell, interfaces=only)) for cell in both for only in ("wifi", "lte")), "T"
    )


def _alone(
    number: str, key: str, values: Iterable[int], base: Cell, falling: bool = False
) -> tuple[Relation, ...]:
    return (_falling if falling else _rising)(base, number, key, values, (A,))


FULL = "One connection of each pair already fills both cells here (alone, WiFi carries 12.1 of the 12 Mb/s per node that are deduced from the study, LTE 3.7 of 4); with more of them the last one is done later"
EVEN = "Here both paths are full whatever the law, so T differs by a few percent only"
DEEP = "The last segments of a small transfer wait in LTE's buffer (1 MB is 2 s at 4 Mb/s; its mean round trip is 1 to 2 s), where the scheduler has put them while WiFi was full"
CLAIMS = (
    Claim("N1", "S", "Setup I: more by WiFi than by LTE, for all laws and numbers of connections",
          tuple(_is((_by(I5, cc, parallel=n), "W"), ">", (_by(I5, cc, parallel=n), "L")) for n in CONNECTIONS for cc in LAWS), True),
    Claim("N2", "S", "Setup I: five connections carry more than one, by WiFi and by LTE, for all",
          _rising(I5, "W", "parallel", (1, 5)) + _rising(I5, "L", "parallel", (1, 5)), True, FULL),
    Claim("N3", "S", "Setup I: from 5 to 10 connections WiFi falls for LIA and OLIA, LTE falls for none",
          _falling(I5, "W", "parallel", (5, 10), (A, O)) + _of(((_by(I5, cc, parallel=10), _by(I5, cc)) for cc in LAWS), "L", ">=")),
    Claim("N4", "S", "Setup I, 5 and 10 connections: Cubic > OLIA >= LIA",
          _ordered(I5, C, ">", O, ">=", A) + _ordered(replace(I5, parallel=10), C, ">", O, ">=", A), False, EVEN),
    Claim("N5", "W", "Setup I, one connection: OLIA > Cubic and LIA", _ordered(replace(I5, parallel=1), O, ">", C)
          + _ordered(replace(I5, parallel=1), O, ">", A)),
    Claim("N6", "S", "Setup II: LTE carries more with more connections, and more than in Setup I, for all",
          _rising(II5, "L", "parallel", CONNECTIONS)
          + _of(((_by(II5, cc, parallel=n), _by(I5, cc, parallel=n)) for n in CONNECTIONS for cc in LAWS), "L"), True, FULL),
    Claim("N7", "M", "Setup II: WiFi grows with connections for LIA, falls from 5 to 10 for OLIA",
          _rising(II5, "W", "parallel", CONNECTIONS, (A,)) + _falling(II5, "W", "parallel", (5, 10), (O,))),
    Claim("N8", "M", "WiFi carries less in Setup II than in Setup I, with 5 and 10 connections",
          _of(((_by(I5, cc, parallel=n), _by(II5, cc, parallel=n)) for n in (5, 10) for cc in LAWS), "W")),
    Claim("N9", "M", "Setup II: Cubic ~ OLIA with one connection; with 5 and 10 OLIA > LIA and OLIA >= Cubic",
          _ordered(replace(II5, parallel=1), C, "~", O)
          + tuple(each for n in (5, 10) for each in (*_ordered(replace(II5, parallel=n), O, ">", A), *_ordered(replace(II5, parallel=n), O, ">=", C)))),
    Claim("N10", "S", "Setup II, 802.11g: LTE carries more with more connections, for all", _rising(II5G, "L", "parallel", CONNECTIONS), True, FULL),
    Claim("N11", "M", "Setup II, 802.11g: WiFi carries less with 5 connections than with one, for all", _falling(II5G, "W", "parallel", (1, 5))),
    Claim("N12", "S", "Setup II, 802.11g: LTE > WiFi, and Cubic > OLIA and LIA, with 1, 5 and 10 connections (with 5 also S6)",
          tuple(_is((_by(II5G, cc, parallel=n), "L"), ">", (_by(II5G, cc, parallel=n), "W")) for n in CONNECTIONS for cc in LAWS)
          + tuple(each for n in CONNECTIONS for law in (O, A) for each in _ordered(replace(II5G, parallel=n), C, ">", law)), True, EVEN),
    Claim("N14", "S", "Everywhere five connections carry more in all than one",
          tuple(each for base in (I5, II5, II5G) for each in _rising(base, "T", "parallel", (1, 5))), True, FULL),
    Claim("V1", "S", "Setup I: LTE carries more of larger volumes, for all", _rising(I5, "L", "volume_mb", (5, 10, 15)), True, "LTE is full from the first second"),
    Claim("V2", "M", "Setup I: WiFi carries more of 15 than of 10 MB for Cubic and OLIA, less for LIA",
          _rising(I5, "W", "volume_mb", (10, 15), (C, O)) + _falling(I5, "W", "volume_mb", (10, 15), (A,))),
    Claim("B4", "M", "Setup III, 10 connections: Cubic is fastest with 800 KB",
          tuple(_is((Cell(3, "11n5", 10, buffer_kb=800, cc=C), "T"), ">", (Cell(3, "11n5", 10, buffer_kb=kb, cc=C), "T")) for kb in (640, 1000, 1200))),
    Claim("B5", "M", "Setup III, 10 connections: LIA is fastest with 1000 KB",
          tuple(_is((Cell(3, "11n5", 10, cc=A), "T"), ">", (Cell(3, "11n5", 10, buffer_kb=kb, cc=A), "T")) for kb in (640, 800, 1200))),
    Claim("S1", "M", "Setup I, 802.11a: Cubic ~ OLIA, LIA slightly more", _ordered(I5A, C, "~", O) + _ordered(I5A, A, ">=", C) + _ordered(I5A, A, ">=", O)),
    Claim("S2", "M", "Setup I, 802.11n at 2.4 GHz: Cubic and LIA > OLIA", _ordered(I5N24, C, ">", O) + _ordered(I5N24, A, ">", O)),
    Claim("S3", "S", "Setup I, 802.11n at 5 GHz: more than with 11a and with 11n at 2.4 GHz for all, and Cubic > OLIA > LIA",
          _of(((_by(I5N5, cc), _by(other, cc)) for other in (I5A, I5N24) for cc in LAWS), "T") + _ordered(I5N5, C, ">", O, ">", A), False, EVEN),
    Claim("S4", "S", "Setup III carries less than Setup II, for every law and standard",
          _of(((Cell(2, wifi, 5, buffer_kb=800, cc=cc), Cell(3, wifi, 5, buffer_kb=800, cc=cc)) for wifi in STANDARDS for cc in LAWS), "T"), True),
    Claim("S5", "S", "Setup III: OLIA >= LIA > Cubic, for every standard",
          tuple(each for wifi in STANDARDS for each in _ordered(Cell(3, wifi, 5, buffer_kb=800), O, ">=", A, ">", C)), True),
    Claim("H1", "S", "LTE alone: Cubic ~ LIA ~ OLIA", _ordered(LTE, C, "~", A, "~", O), True),
    Claim("H2", "M", "WiFi alone: Cubic >= LIA >= OLIA", _ordered(WIFI, C, ">=", A, ">=", O)),
    Claim("H3", "S", "Both interfaces carry more than either alone, for all buffers, numbers of connections and volumes (LIA)", _gains(), True, DEEP),
    Claim("H5", "S", "Either interface alone carries more with more connections",
          _alone("T", "parallel", CONNECTIONS, WIFI) + _alone("T", "parallel", CONNECTIONS, LTE), False, FULL),
    Claim("H6", "S", "WiFi alone falls with volume; LTE alone carries a little more of 10 than of 5 MB",
          _alone("T", "volume_mb", (5, 10, 15), WIFI, falling=True) + _alone("T", "volume_mb", (5, 10), LTE)),
)  # fmt: skip


def _cells() -> dict[str, Cell]:
    """Every cell that a claim needs, by name."""
    relations = [each for claim in CLAIMS for each in claim.relations if isinstance(each, Relation)]
    sides = [
        side.case
        for each in relations
        for side in (each.left, each.right)
        if isinstance(side, Value)
    ]
    return {name: _named(name) for name in dict.fromkeys(sides)}


def _named(name: str) -> Cell:
    setup, wifi, parallel, volume, buffer, interfaces, cc = name.split("-")
    return Cell(int(setup), wifi, int(parallel), int(volume), int(buffer), interfaces, cc)


CELLS = _cells()


def page(found: Found) -> str:
    """Claims, then every cell."""
    return "\n\n".join([
        f"Of the claims that a reproduction is judged on, {score(CLAIMS, found)} agree: "
        f"{', '.join(each.name for each in CLAIMS if each.judged and each.verdict(found) == 'agrees')} of "
        f"{', '.join(each.name for each in CLAIMS if each.judged)}.",
        "T is a node's volume over the time until all of it has arrived, in Mb/s, W and L its parts by WiFi and by LTE; Roman numbers are setups, C, A and O "
        "Cubic, LIA and OLIA. (n) connections per node; [v] MB where not 15, {b} KB of receive buffer where not 1000; 802.11n at 5 GHz where nothing else is said.",
        claims_table(CLAIMS, found),
        "## Every cell",
        "T (W + L) in Mb/s per node, means over the seeds.",
        _table(found),
    ])  # fmt: skip


def _table(found: Found) -> str:
    rows: dict[str, dict[str, str]] = {}
    for name, cell in CELLS.items():
        total, wifi, lte = (
            mean([numbers[key] for numbers in found[name]]) for key in ("T", "W", "L")
        )
        rows.setdefault(cell.about, {})[cell.cc] = f"{total:.2f} ({wifi:.2f} + {lte:.2f})"
    return markdown_table(
        ("", *LAWS),
        [[about, *(row.get(cc, "-") for cc in LAWS)] for about, row in sorted(rows.items())],
    )


RAT_STUDY = Paper(
    "rat_study",
    "Cubic, LIA and OLIA over LTE and WiFi",
    tuple(cell.case for cell in CELLS.values()),
    measure,
    page,
)
