"""The papers that the command `reproduce` can repeat."""

from __future__ import annotations

from papers.base import Paper
from papers.dtmc import DTMC
from papers.mp_sdn import MP_SDN
from papers.mptcp_la import MPTCP_LA
from papers.rat_study import RAT_STUDY
from papers.s_mptcp import S_MPTCP

PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (MP_SDN, S_MPTCP, MPTCP_LA, DTMC, RAT_STUDY)
}
