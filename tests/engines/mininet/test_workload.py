"""The timeline of a scenario's flows; the traffic programs are fakes that record commands."""

import pytest

from lab.engines.mininet.traffic import workload as module
from lab.engines.mininet.traffic.workload import COMMAND_S, Workload, one_each
from lab.errors import LabError
from lab.scenario import flows
from lab.scenario.flows import Flow
from lab.topologies.topology import wire


class Clock:
    """Time passes only by sleeping and by commands."""

    now = 100.0
    command_s = 0.0  # how long a command takes

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class TrafficProcesses:
    hosts = ("ue1", "srv1")

    def __init__(self, clock):
        self.clock, self.requests, self.joined = clock, [], lambda now, name: 1
        self.opens_s = {}  # how long it takes to open a connection during the run, by flow
        self.problems = {}  # why one cannot be opened

    def send(self, host, **request):
        return self.send_all({host: request})[host]

    def send_all(self, requests):
        self.clock.now += self.clock.command_s
        for host, request in requests.items():
            self.requests.append((round(self.clock.now - 100, 3), host, request))
        names = [each["id"] for _, _, each in self.connects()]
        joined = {name: self.joined(self.clock.now - 100, name) for name in names}
        return {
            host: {
                "port": 40_000 + len(self.requests),
                "subflows": joined,
                "opened": self._opened(host),
            }
            for host in requests
        }

    def connects(self):
        """Each connection that was asked for, also those that open in the background."""
        for at, host, request in self.requests:
            for each in request["flows"] if request["do"] == "open" else [request]:
                if each["do"] == "connect":
                    yield at, host, each

    def _opened(self, host):
        asked = [(at, each["id"]) for at, of, each in self.connects() if of == host]
        now = self.clock.now - 100
        is_open = {name: at + self.opens_s.get(name, 0) <= now + 1e-9 for at, name in asked}
        return {
            name: self.problems.get(name, 50_000 + n)
            for n, name in enumerate(is_open)
            if is_open[name]
        }

    def commands(self, verb):
        if verb == "connect":
            return [(at, host, each["id"]) for at, host, each in self.connects()]
        return [
            (at, host, request["id"])
            for at, host, request in self.requests
            if request["do"] == verb
        ]


class Sampler:
    def __init__(self):
        self.opened = []

    def open(self, opened):
        self.opened.append(opened)


@pytest.fixture
def work(load_testbed, monkeypatch):
    """The workload of testbed_wifi_lte with these flows."""

    def make(*flows, **settings):
        clock = Clock()
        monkeypatch.setattr(module, "time", clock)
        traffic = "[" + ", ".join(flows) + "]"
        scenario = load_testbed(
            f"traffic={traffic}",
            "duration_s=20",
            *(f"{key}={value}" for key, value in settings.items()),
        )
        topology = scenario.network
        return Workload(scenario, wire(topology), TrafficProcesses(clock), Sampler())

    return make


def test_flows_connect_before_the_clock_starts(work):
    made = work("{user: ue1}", "{user: ue2}", "{user: ue3, start_s: 4}")
    made.prepare()
    assert made.programs.commands("connect") == [(0, "ue1", "ue1-1"), (0, "ue2", "ue2-1")]
    assert not made.programs.commands("go")
    made.begin()
    lead_s = made.zero_s - 100
    assert [each[1:] for each in made.programs.commands("go")] == [
        ("ue1", "ue1-1"),
        ("ue2", "ue2-1"),
    ]
    made.until(5)
    assert (
        made.programs.commands("go")[2:]
        == made.programs.commands("connect")[2:]
        == [(pytest.approx(4 + lead_s), "ue3", "ue3-1")]
    )
    assert made.now_s() == pytest.approx(5)


def test_flows_of_one_time_start_together_after_their_last_command(work):
    made = work(
        "{user: ue2, parallel: 3, volume_mb: 1, kind: file}",
        "{user: ue1, kind: udp, rate_mbps: 1}",
        "{user: ue3, start_s: 4, parallel: 2, volume_mb: 1, kind: file}",
    )
    made.programs.clock.command_s = 0.8 * COMMAND_S
    made.prepare()
    made.begin()
    made.until(5)
    goes = [
        (at + 100, request) for at, _, request in made.programs.requests if request["do"] == "go"
    ]
    first = {request["at_s"] for at, request in goes if at < made.zero_s + 1}
    later = {request["at_s"] for at, request in goes if at > made.zero_s + 1}
    (zero_s,), (start_s,) = first, later
    assert zero_s == pytest.approx(made.zero_s, abs=0.01)
    assert made.zero_s + 4 <= start_s < made.zero_s + 4.5
    assert all(at < request["at_s"] for at, request in goes)
    assert len(goes) == 4 + 1 + 2


def test_the_clock_starts_when_the_servers_have_every_subflow(work):
    made = work("{user: ue1}", "{user: ue2}")
    made.programs.joined = lambda now, name: int(now >= 1)
    assert made.prepare() == []
    assert made.programs.clock.now - 100 == pytest.approx(1, abs=0.2)
    assert {host for _, host, request in made.programs.requests if request["do"] == "subflows"} == {
        "srv1"
    }


def test_a_connection_that_lacks_a_subflow_is_opened_once_more(work):
    made = work("{user: ue2}", "{user: ue3}")
    made.programs.joined = lambda now, name: int(
        name == "ue3-1" or now > module.SUBFLOWS_WITHIN_S + 1
    )
    assert made.prepare() == ["ue2-1"]
    (stopped,) = made.programs.commands("stop")
    assert stopped == (pytest.approx(module.SUBFLOWS_WITHIN_S, abs=0.2), "ue2", "ue2-1")
    assert [name for _, _, name in made.programs.commands("connect")] == ["ue2-1", "ue3-1", "ue2-1"]
    assert [opened.id for opened in made.sampler.opened] == ["ue2-1", "ue3-1", "ue2-1"]


def test_a_connection_that_never_gets_its_subflows_runs_without_them(work):
    made = work("{user: ue2}")
    made.programs.joined = lambda now, name: 0
    assert made.prepare() == ["ue2-1", "ue2-1"]
    assert len(made.programs.commands("connect")) == module.MAX_ATTEMPTS
    assert len(made.programs.commands("stop")) == module.MAX_ATTEMPTS - 1
    assert made.programs.clock.now - 100 == pytest.approx(
        module.MAX_ATTEMPTS * module.SUBFLOWS_WITHIN_S, abs=0.5
    )


@pytest.mark.parametrize("flow", ["{user: ue1}", "{user: ue2}"])
def test_plain_tcp_is_not_delayed_by_missing_subflows(work, flow):
    made = work(flow)
    made.programs.joined = lambda now, name: None if "ue2" in flow else 0
    assert made.prepare() == []
    assert made.programs.clock.now == 100


def test_a_connect_command_holds_what_the_scenario_says(work, monkeypatch):
    monkeypatch.setattr(flows, "_port", lambda seed, name, taken: flows.FIRST_PORT + 7)
    made = work(
        "{user: ue3, kind: file, volume_mb: 2, direction: up, cc: cubic}",
        **{"multipath.receive_buffer_kb": 500},
    )
    made.prepare()
    (_, _, request) = made.programs.requests[0]
    assert request == {
        "do": "connect",
        "id": "ue3-1",
        "port": flows.FIRST_PORT + 7,
        "protocol": "tcp",
        "server": "10.0.0.1",
        "bind": "10.2.0.3",
        "mptcp": True,
        "direction": "up",
        "cc": "cubic",
        "rate_bps": None,
        "volume_bytes": 2_000_000,
        "receive_buffer_bytes": 500_000,
        "client": None,
        "place": 0,
        "call": None,
    }
    (opened,) = made.sampler.opened
    assert (opened.endpoint, opened.multipath) == (("10.2.0.3", 40_001), True)


def test_only_multipath_users_request_mptcp(work):
    made = work("{user: ue1}", "{user: ue2}")
    made.prepare()
    assert [
        request["mptcp"] for _, _, request in made.programs.requests if request["do"] == "connect"
    ] == [False, True]


def test_flows_stop_and_pause_in_time(work):
    made = work("{user: ue1, stop_s: 3}", "{user: ue2, kind: on_off, rate_mbps: 4}")
    made.prepare()
    made.begin()
    made.until(20)
    lead_s = made.zero_s - 100
    assert made.programs.commands("stop") == [(pytest.approx(3 + lead_s), "ue1", "ue1-1")]
    rates = [
        request["rate_bps"] for _, _, request in made.programs.requests if request["do"] == "rate"
    ]
    assert rates == [0, 4_000_000, 0]


def test_a_demand_is_divided_among_the_open_connections_also_later_ones(work):
    made = work("{user: ue1}", "{user: ue1, start_s: 2}")
    made.prepare()
    made.begin()
    made.set_demand("ue1", 6_000_000)

    def rates():
        return {
            request["id"]: request["rate_bps"]
            for _, _, request in made.programs.requests
            if request["do"] == "rate"
        }

    assert rates() == {"ue1-1": 6_000_000}
    made.until(2)
    assert rates() == {"ue1-1": 3_000_000, "ue1-2": 3_000_000}
    (event,) = made.completed({"ue1-1": 1.5})
    assert event == (1.5, {"user": "ue1", "connection": "ue1-1", "completion_s": 1.5})
    assert rates()["ue1-2"] == 6_000_000
    made.set_demand("ue1", None)
    assert rates() == {"ue1-1": 3_000_000, "ue1-2": None}


def test_a_changed_congestion_control_holds_for_later_connections(work):
    made = work("{user: ue1}", "{user: ue1, start_s: 2}")
    made.prepare()
    made.begin()
    made.set_cc("cubic")
    made.until(2)
    assert [each["cc"] for _, _, each in made.programs.connects()] == ["reno", "cubic"]


@pytest.mark.parametrize(("direction", "sender"), [("down", "srv1"), ("up", "ue2")])
def test_both_ends_of_a_udp_flow_are_commanded_and_the_sender_has_the_rate(work, direction, sender):
    flow = f"user: ue2, kind: udp, rate_mbps: 2, direction: {direction}, stop_s: 3"
    made = work("{" + flow + "}")
    assert made.prepare() == []  # no subflow is missing
    made.begin()
    made.set_demand("ue2", 1_000_000)
    made.until(4)
    ran = [(host, request["do"]) for _, host, request in made.programs.requests]
    assert [each for each in ran if each[1] in ("connect", "expect")] == [
        ("ue2", "connect"),
        ("srv1", "expect"),
    ]
    for verb in ("go", "stop"):
        assert {host for host, do in ran if do == verb} == {"ue2", "srv1"}
    rates = [
        (host, request["rate_bps"])
        for _, host, request in made.programs.requests
        if request["do"] == "rate"
    ]
    assert (sender, 1_000_000) in rates
    assert {host for host, _ in rates} == {sender}
    requests = [request for _, _, request in made.programs.requests]
    assert {request["mptcp"] for request in requests if "mptcp" in request} == {False}
    (opened,) = made.sampler.opened
    assert (opened.multipath, opened.path) == (False, ("s1", "wifi1"))


def test_a_host_gets_one_command_at_a_time():
    def flow(user, number):
        return Flow(f"{user}-{number}", user, "down", "reno", None, None)

    rounds = one_each([flow("a", 1), flow("a", 2), flow("b", 1)])
    assert [[each.id for each in batch] for batch in rounds] == [["a-1", "b-1"], ["a-2"]]


def test_a_warm_connection_is_opened_before_the_run_and_starts_later(work):
    made = work("{user: ue1}", "{user: ue2, start_s: 4, warm: true}", "{user: ue3, start_s: 4}")
    made.prepare()
    made.begin()
    made.until(5)
    opened = {flow: at + 100 < made.zero_s for at, _, flow in made.programs.commands("connect")}
    assert opened == {"ue1-1": True, "ue2-1": True, "ue3-1": False}
    started = {flow: at + 100 < made.zero_s for at, _, flow in made.programs.commands("go")}
    assert started == {"ue1-1": True, "ue2-1": False, "ue3-1": False}


def test_the_flows_of_a_workload_are_told_before_the_run_and_started_by_the_programs(work):
    many = "{user: ue2, kind: workload, sizes: [[20, 1]], rate_mbps: 0.5}"
    made = work("{user: ue1}", many)
    made.prepare()
    (plan,) = [each for _, _, each in made.programs.requests if each["do"] == "plan"]
    flows = {each["id"]: each for each in plan["flows"]}
    assert len(flows) > 20
    assert all(each["volume_bytes"] and 0 < each["at_s"] < 20 for each in flows.values())
    assert [each[1:] for each in made.programs.commands("connect")] == [("ue1", "ue1-1")]
    made.begin()
    begun = [(host, each) for _, host, each in made.programs.requests if each["do"] == "begin"]
    assert begun == [("ue2", {"do": "begin", "zero_s": made.zero_s})]
    made.until(20)
    assert [each[2] for each in made.programs.commands("go")] == ["ue1-1"]
    opened = {each.id: each for each in made.sampler.opened if each.is_one_of_many}
    assert set(opened) == set(flows)
    assert all(each.endpoint[1] == flows[each.id]["port"] for each in opened.values())
    name = next(iter(flows))
    ((t, fields),) = made.completed({name: 0.25})
    assert t == pytest.approx(flows[name]["at_s"] + 0.25)
    assert fields == {
        "user": "ue2",
        "connection": name,
        "completion_s": 0.25,
        "traffic": "workload",
    }


LATER = "{user: ue3, start_s: 4, stop_s: 6, kind: file, volume_mb: 1}"


def test_nothing_waits_for_a_connection_that_opens_during_the_run(work):
    made = work("{user: ue2, stop_s: 5}", LATER)
    made.programs.opens_s = {"ue3-1": 2.5}
    made.prepare()
    made.begin()
    lead_s = made.zero_s - 100
    for n in range(1, 21):
        made.until(n / 2)
        assert made.now_s() == pytest.approx(n / 2)  # the sample is in time
        assert ("ue3-1" in [each.id for each in made.sampler.opened]) == (n / 2 >= 6.5)
    (_, (asked, *_)) = made.programs.commands("connect")
    assert asked == pytest.approx(4 + lead_s)
    started = {flow: at for at, _, flow in made.programs.commands("go")}
    assert started["ue3-1"] == pytest.approx(6.5 + lead_s, abs=2 * module.POLL_S)
    stopped = {flow: at for at, _, flow in made.programs.commands("stop")}
    assert stopped["ue2-1"] == pytest.approx(5 + lead_s)
    assert stopped["ue3-1"] >= started["ue3-1"]  # at 6 s it was not open
    ((t, _),) = made.completed({"ue3-1": 0.5})
    assert t == pytest.approx(7, abs=2 * module.POLL_S)


def test_connections_of_one_time_start_when_the_last_one_is_open(work):
    made = work("{user: ue1}", "{user: ue2, start_s: 3, parallel: 2}", "{user: ue3, start_s: 3}")
    made.programs.opens_s = {"ue2-2": 1.0, "ue3-1": 0.4}
    made.prepare()
    made.begin()
    made.until(3.9)
    assert {flow for _, _, flow in made.programs.commands("go")} == {"ue1-1"}
    made.until(5)
    goes = [each for _, _, each in made.programs.requests if each["do"] == "go"][1:]
    assert {each["id"] for each in goes} == {"ue2-1", "ue2-2", "ue3-1"}
    assert len({each["at_s"] for each in goes}) == 1


def test_a_run_that_is_always_late_starts_its_later_connections_too(work):
    made = work("{user: ue1}", LATER)
    made.prepare()
    made.begin()
    for n in range(1, 20):
        made.programs.clock.now += 1.0
        made.until(n / 2)
    assert "ue3-1" in [flow for _, _, flow in made.programs.commands("go")]


def test_a_changed_congestion_control_reaches_connections_that_were_opening(work):
    made = work("{user: ue1}", LATER)
    made.programs.opens_s = {"ue3-1": 1.0}
    made.prepare()
    made.begin()
    made.until(4.5)
    made.set_cc("cubic")
    made.until(6)
    did = [each["do"] for _, _, each in made.programs.requests]
    assert did.count("cc") == 2 * len(made.programs.hosts)
    assert did.index("go", did.index("open")) > len(did) - 1 - did[::-1].index("cc")


def test_a_demand_counts_connections_from_when_they_are_open(work):
    made = work("{user: ue3}", "{user: ue3, start_s: 4}")
    made.programs.opens_s = {"ue3-2": 1.0}
    made.prepare()
    made.begin()
    made.until(4.5)
    made.set_demand("ue3", 6_000_000)
    rates = [each for _, _, each in made.programs.requests if each["do"] == "rate"]
    assert [(each["id"], each["rate_bps"]) for each in rates] == [("ue3-1", 6_000_000)]
    made.until(6)
    rates = [each for _, _, each in made.programs.requests if each["do"] == "rate"]
    assert {each["id"]: each["rate_bps"] for each in rates} == {
        "ue3-1": 3_000_000,
        "ue3-2": 3_000_000,
    }


def test_a_connection_that_cannot_be_opened_ends_the_run_with_its_reason(work):
    made = work("{user: ue1}", LATER)
    made.programs.problems = {"ue3-1": "TimeoutError: timed out"}
    made.prepare()
    made.begin()
    with pytest.raises(LabError, match="ask ue3 to connect: TimeoutError: timed out"):
        made.until(5)
