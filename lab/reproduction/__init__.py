"""Papers whose experiments can be made again by one command, each with what it claims."""

from __future__ import annotations

from lab.reproduction.base import Paper
from lab.reproduction.mp_sdn import MP_SDN
from lab.reproduction.rat_study import RAT_STUDY

PAPERS: dict[str, Paper] = {paper.name: paper for paper in (MP_SDN, RAT_STUDY)}
