"""List the papers whose experiments the command `reproduce` repeats."""

from __future__ import annotations

from lab.evaluation.reproduction.base import Paper
from lab.evaluation.reproduction.dtmc import DTMC
from lab.evaluation.reproduction.mp_sdn import MP_SDN
from lab.evaluation.reproduction.mptcp_la import MPTCP_LA
from lab.evaluation.reproduction.rat_study import RAT_STUDY
from lab.evaluation.reproduction.s_mptcp import S_MPTCP

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (MP_SDN, S_MPTCP, MPTCP_LA, DTMC, RAT_STUDY)
}
