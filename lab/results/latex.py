"""A comparison as a table in LaTeX, with the package booktabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lab.results.compare import Comparison, Parts
from lab.results.labels import label, setting_text
from lab.results.statistics import Estimate

ESCAPED = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        **{each: f"\\{each}" for each in "&%$#_{}"},
        "\n": " ",
    }
)
HEAD = ("", "$n$", "Mean", r"95\,\% interval", "Against the first group")


def escaped(text: str) -> str:
    """Return a text as LaTeX prints it."""
    return text.translate(ESCAPED)


def table(parts: Parts, metrics: Sequence[str] = ()) -> str:
    """Return a row for each metric that was measured, and group. Without `metrics`, all are there.
    The name of a metric has a line of its own, because many tables would be wider than a page.

    Notes and warnings are comments below.
    """
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{tabular}{lrrll}",
        r"\toprule",
        _row(HEAD),
    ]
    for by, found in parts:
        if by:
            named = ", ".join(setting_text(key, value) for key, value in by.items())
            lines += [r"\midrule", _line(rf"\textbf{{{escaped(named)}}}")]
        lines += _body(found, metrics or list(found.estimates))
    lines += [r"\bottomrule", r"\end{tabular}"]
    said = [text for _, found in parts for text in (*found.notes, *found.warnings)]
    lines += [f"% {line}" for text in dict.fromkeys(said) for line in text.splitlines()]
    return "\n".join([*lines, ""])


def _body(found: Comparison, metrics: Sequence[str]) -> Iterator[str]:
    own = [each for group in found.groups for run in group.runs for each in run.own]
    for metric in metrics:
        estimates = found.estimates.get(metric, [])
        if all(each.mean is None for each in estimates):
            continue
        yield r"\midrule"
        named = label(metric, own)
        yield _line(escaped(f"{named.text} ({named.unit})" if named.unit else named.text))
        for group, each in zip(found.groups, estimates, strict=True):
            verdict = found.verdicts.get(group.label, {}).get(metric)
            name = group.name
            words = verdict.short if verdict else ""
            yield _row([rf"\quad {escaped(name)}", *_numbers(each), escaped(words)])


def _numbers(each: Estimate) -> tuple[str, str, str]:
    mean = "--" if each.mean is None else _number(each.mean)
    if each.low is None or each.high is None:
        return str(each.n), mean, "--"
    return str(each.n), mean, f"[{_number(each.low)}, {_number(each.high)}]"


def _number(value: float) -> str:
    """Three significant digits; `1.2e+06` becomes a power of ten."""
    digits, _, power = f"{value:.3g}".partition("e")
    return rf"${digits} \times 10^{{{int(power)}}}$" if power else f"${digits}$"


def _line(text: str) -> str:
    return rf"\multicolumn{{{len(HEAD)}}}{{l}}{{{text}}} \\"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
