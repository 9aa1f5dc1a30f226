"""Decide which Tier 2 subflows are backup, from the limit of their access point.

A sender that may send next to nothing on one subflow still puts data into it, and the receiver then
waits for these data although the other subflows are fast. While the limit of an access point is at
its floor, its Tier 2 subflows are therefore better kept as backup (MP_PRIO, RFC 8684, section
3.3.8):
1) Count the control steps in which the limit is at the floor. After `floor_steps` of them, every
   Tier 2 subflow at the access point becomes backup.
2) The limit goes on changing with the MAC occupancy. When it reaches `room_factor` times the floor,
   the subflows are used once more. Between the two, they stay as they are.
3) A subflow stays in use if its connection has no other subflow in use.
4) A subflow that becomes backup still has data, up to 64 kB and its window. At the floor it would
   send them for many seconds, and the receiver would wait for them. The access point therefore has
   no limit from then on, until its Tier 2 subflows send less than half of the floor, for at most
   `MOST_DRAIN_STEPS` control steps. This holds only if all of them are backup: they get no new
   data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from controller.command import Decision, SetBackup, Throttle, Unthrottle, subflow_name
from controller.observation import AccessPoint, Observation, Subflow
from controller.units import rate_text

MOST_DRAIN_STEPS = 5
IDLE_FRACTION = 0.5  # of the floor: subflows that send less have no data left


class FloorBackup:
    """Count the control steps with the limit at the floor, and decide about backup flags.

    The counts are lost when the controller restarts; the backup flags are in the observation.
    """

    def __init__(self, floor_steps: int, room_factor: float) -> None:
        self._floor_steps, self._room_factor = floor_steps, room_factor
        self._steps: dict[str, int] = {}  # by access point, with the limit at the floor
        self._drain_steps: dict[str, int] = {}  # by access point, without a limit for rule 4

    def decisions(
        self, limits: Sequence[Decision], floor_bps: int, observation: Observation
    ) -> list[Decision]:
        """Return the decisions of this control step: limits and changes of backup flags.

        `limits` are the decisions about the limits of access points; rule 4 replaces some of them.
        """
        limits_bps = {
            each.command.ap: each.command.rate_bps
            for each in limits
            if isinstance(each.command, Throttle)
        }
        self._steps = {
            ap: self._steps.get(ap, 0) + 1
            for ap, limit_bps in limits_bps.items()
            if limit_bps <= floor_bps
        }
        unused = {
            ap for ap, bps in limits_bps.items() if self._is_unused(ap, bps, floor_bps, observation)
        }
        backup = wanted(unused, observation)
        aps = {ap.id: ap for ap in observation.access_points}
        self._drain_steps = {
            name: self._drain_steps.get(name, 0) + 1
            for name in limits_bps
            if self._drains(aps[name], backup, floor_bps, observation)
        }
        kept = [
            _lifted(aps[each.subject], observation) if each.subject in self._drain_steps else each
            for each in limits
        ]
        return [*kept, *changes(backup, limits_bps, observation)]

    def _drains(
        self,
        ap: AccessPoint,
        backup: set[tuple[str, int]],
        floor_bps: int,
        observation: Observation,
    ) -> bool:
        """Return whether the subflows at `ap` are to send the data that they still have (rule 4).

        `backup` has the keys of the subflows that are backup after this step.
        """
        subflows = tier2_subflows(ap.id, observation)
        if not subflows or any(each.key not in backup for each in subflows):
            return False
        if any(not each.backup for each in subflows):
            return True
        steps = self._drain_steps.get(ap.id, MOST_DRAIN_STEPS)
        sends = ap.tier2_bps is not None and ap.tier2_bps >= IDLE_FRACTION * floor_bps
        return sends and steps < MOST_DRAIN_STEPS

    def _is_unused(self, ap: str, limit_bps: int, floor_bps: int, observation: Observation) -> bool:
        if limit_bps >= self._room_factor * floor_bps:
            return False
        return self._steps.get(ap, 0) >= self._floor_steps or is_backed_up(ap, observation)


def _lifted(ap: AccessPoint, observation: Observation) -> Decision:
    why = "its Tier 2 subflows become backup"
    if all(each.backup for each in tier2_subflows(ap.id, observation)):
        sent = rate_text(ap.tier2_bps or 0, observation.rate_scale)
        why = f"its Tier 2 subflows are backup, and still send {sent}"
    reason = f"{why}: no limit until they have sent the data that they have"
    return Decision(ap.id, reason, Unthrottle(ap.id) if ap.meter_bps is not None else None)


def tier2_subflows(ap: str, observation: Observation) -> list[Subflow]:
    """Return the subflows of Tier 2 users at access point `ap`."""
    return [
        each
        for each in observation.subflows
        if each.ap == ap and observation.tiers.get((each.user, ap), 1) == 2
    ]


def is_backed_up(ap: str, observation: Observation) -> bool:
    """Return whether a Tier 2 subflow at access point `ap` is backup."""
    return any(each.backup for each in tier2_subflows(ap, observation))


def wanted(unused: set[str], observation: Observation) -> set[tuple[str, int]]:
    """Return the keys of the subflows that should be backup.

    `unused` names the access points whose Tier 2 subflows should not be used.
    """
    keys = {each.key for ap in unused for each in tier2_subflows(ap, observation)}
    for subflows in observation.connections().values():
        of_connection = {each.key for each in subflows}
        if of_connection <= keys:
            keys -= of_connection
    return keys


def changes(
    backup: set[tuple[str, int]], limits_bps: Mapping[str, int], observation: Observation
) -> Iterator[Decision]:
    """Yield one decision for each subflow whose backup flag changes, cleared flags first.

    `backup` has the keys of the subflows that should be backup. A flag is cleared before others are
    set, so that every connection always has a subflow in use.
    """
    changed = [each for each in observation.subflows if each.backup != (each.key in backup)]
    for each in sorted(changed, key=lambda each: (not each.backup, each.key)):
        limit_bps = limits_bps.get(each.ap)
        is_tier2 = observation.tiers.get((each.user, each.ap), 1) == 2
        if limit_bps is None or not is_tier2:
            why = "Tier 1 at its access point"
        else:
            why = f"the limit is {rate_text(limit_bps, observation.rate_scale)}"
        action = "in use once more" if each.backup else "backup until there is room"
        yield Decision(
            subflow_name(each.key), f"{why}: {action}", SetBackup(each.key, not each.backup)
        )
