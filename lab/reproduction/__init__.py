"""Papers whose experiments can be made again by one command, each with what it claims."""

from __future__ import annotations

from lab.reproduction.base import Paper
from lab.reproduction.dtmc import DTMC
from lab.reproduction.mp_sdn import MP_SDN
from lab.reproduction.mptcp_la import MPTCP_LA
from lab.reproduction.rat_study import RAT_STUDY
from lab.reproduction.s_mptcp import S_MPTCP

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (MP_SDN, S_MPTCP, MPTCP_LA, DTMC, RAT_STUDY)}
