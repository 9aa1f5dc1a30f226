"""What our netlink code sets and reads is what tc and ip show."""

import json
import re
import subprocess
from contextlib import closing

import pytest
from machine import needs_root

from lab.engines.mininet.kernel import shaping
from lab.engines.mininet.kernel.netlink import Scheduler
from lab.errors import LabError

pytestmark = needs_root


@pytest.fixture
def scheduler():
    with closing(Scheduler()) as opened:
        yield opened


def shown(*argv):
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_an_interfaces_number_matches_ip(veth, scheduler):
    assert scheduler.index(veth) == shown("ip", "-j", "link", "show", veth)[0]["ifindex"]


def test_an_unknown_interface_is_named(scheduler):
    with pytest.raises(LabError, match="nosuch0"):
        scheduler.index("nosuch0")


def test_a_rate_set_over_netlink_is_read_back_by_tc(veth, scheduler):
    subprocess.run(
        ["tc", "-batch", "-"],
        input=shaping.batch(shaping.rate(veth, shaping.Shape(5_000_000, queue_packets=100))),
        text=True,
        check=True,
    )
    scheduler.set_rates({scheduler.index(veth): (2_000_000, 6000)})
    shaped = subprocess.run(
        ["tc", "class", "show", "dev", veth], capture_output=True, text=True, check=True
    ).stdout
    assert "rate 2Mbit ceil 2Mbit" in shaped  # tc 6.1 has no JSON for it
    assert abs(int(re.search(r" burst (\d+)b", shaped)[1]) - 6000) < 100


def test_a_refused_rate_is_an_error_and_the_other_rates_are_set(veth, scheduler):
    subprocess.run(
        ["tc", "-batch", "-"],
        input=shaping.batch(shaping.rate(veth, shaping.Shape(5_000_000, queue_packets=100))),
        text=True,
        check=True,
    )
    here, nowhere = scheduler.index(veth), 999_999
    for rates in ([nowhere, here], [here, nowhere]):
        with pytest.raises(LabError, match="No such device"):
            scheduler.set_rates(dict.fromkeys(rates, (2_000_000, 6000)))
        assert scheduler.index(veth) == here  # the socket has no unread answer
    scheduler.set_rates({})
    shown = subprocess.run(["tc", "class", "show", "dev", veth], capture_output=True, check=True)
    assert b"rate 2Mbit" in shown.stdout


def test_queues_are_counted(veth, scheduler):
    subprocess.run(
        ["tc", "-batch", "-"],
        input=shaping.batch(shaping.rate(veth, shaping.Shape(5_000_000, queue_packets=100))),
        text=True,
        check=True,
    )
    queue, other = (scheduler.index(veth), shaping.PFIFO), (scheduler.index(veth), shaping.NETEM)
    assert list(scheduler.queues([other, queue] * 20)) == [queue]
    assert scheduler.losses([queue]) == {}
