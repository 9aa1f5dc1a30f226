"""Sort the claims that do not agree by the cause of the disagreement.

Each such claim gets a deciding experiment: a run, a computation or a series of runs that can tell
the causes apart. Series over a setting that the paper does not state are on a page of their own
(`lab.evaluation.reproduction.sweeps`).
"""

from __future__ import annotations

from collections.abc import Mapping

from lab.evaluation.reproduction.base import Claim
from lab.evaluation.reproduction.relations import Found

CAUSES = {
    "setting": "a setting that the paper does not state",
    "kernel": "the kernel of the paper, v0.90, whose code is not run here",
    "paper": "the paper",
    "here": "cannot be measured here",
}
UNDECIDED = "not looked for"


def agreeing(claim: Claim, found: Mapping[str, Found]) -> list[str]:
    """Return the stacks with which the claim agrees. `found` maps each stack to the numbers of its
    runs."""
    return [stack for stack, each in found.items() if claim.verdict(each) == "agrees"]


def cause(claim: Claim, found: Mapping[str, Found], titles: Mapping[str, str]) -> str:
    """Return in words why a claim does not agree with every stack. Return an empty text if it does.

    `titles` names each stack in words. A claim that holds with one stack only, and has no other
    cause, is decided by the stack.
    """
    held = agreeing(claim, found)
    if len(held) == len(found):
        return ""
    if claim.cause:
        return CAUSES[claim.cause]
    if held:
        return f"the stack: it holds with {' and '.join(titles[each] for each in held)}"
    return UNDECIDED
