"""Hold the loss measurements of subflows for the strategy `loss_aware`."""

from __future__ import annotations

from dataclasses import dataclass

from controller.observation import Subflow


@dataclass
class Window:
    """Hold the loss measurement of one subflow, and the mode that was last commanded for it.

    The mode is normal or backup: `backup` is True for backup, and `since_ns` is the time of the
    command. `sent` and `lost` are the packets of the present measurement window. `counted` holds
    the subflow's sent and lost counters at the last step; it is None until they are read after a
    change of mode.
    """

    backup: bool
    since_ns: int
    counted: tuple[int, int] | None = None
    sent: int = 0
    lost: float = 0.0

    def restart(self) -> None:
        """Begin a new measurement window with both counts at 0."""
        self.sent, self.lost = 0, 0.0

    def set_mode(self, backup: bool, now_ns: int) -> None:
        """Record the commanded mode (`backup`: True for backup), and begin a new window."""
        self.backup, self.since_ns, self.counted = backup, now_ns, None
        self.restart()


@dataclass(frozen=True)
class Verdict:
    """Hold the packet counts of a subflow whose loss has reached the threshold `gamma`.

    `sent` and `lost` are counted over the present measurement window.
    """

    subflow: Subflow
    sent: int
    lost: float
    gamma: float

    @property
    def loss(self) -> float:
        """Return the fraction of packets that were lost, from 0 to 1."""
        return self.lost / self.sent

    def text(self) -> str:
        """Return the measured loss and the threshold gamma as text for the log."""
        return f"loss {self.loss:.3%} of {self.sent} packets >= {self.gamma:.3%}"
