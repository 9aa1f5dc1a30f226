"""The form that starts runs, and what a running run suggests, in a real browser."""

from __future__ import annotations

import itertools
import re

import pytest
import testbed
from axe import serious_faults
from conftest import until as until_true
from test_browser import page, start_run, until  # noqa: F401  # the fixture `page`

pytestmark = [pytest.mark.browser, pytest.mark.whole]

NUMBERS = "() => [...document.querySelectorAll('#try .letter')].map(each => each.textContent)"
START = {"scenario": "testbed_wifi_lte", "engine": "testbed", "duration_s": 600}


def drawn(page, user):  # noqa: F811
    return page.locator(f"#drawing [data-id='{user}']").count() == 1


@pytest.mark.parametrize("name", ["lia_against_tcp", "cut_or_removed", "testbed_wifi_lte"])
def test_a_form_that_nobody_touched_starts_the_scenario_as_it_is(page, address, name):  # noqa: F811
    sent = []

    def answer(route):
        sent.append(route.request.post_data_json)
        route.fulfill(status=201, json={"id": "plain"})

    page.route("**/api/runs", answer)
    page.goto(f"{address}/scenarios/{name}")
    page.click("form button[type=submit]")
    page.wait_for_url("**/runs/plain")
    assert [each["set"] for each in sent] == [{}]


def test_endpoints_and_limits_are_part_of_the_request(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/testbed_wifi_lte")
    page.click("#endpoints-box summary")
    assert not serious_faults(page)
    page.select_option("#endpoint-ue2-lte0", "backup")
    page.fill("#limit-subflows", "1")
    page.select_option("#engine", "testbed")
    with page.expect_request(lambda each: each.method == "POST") as sent:
        page.click("#start-button")
    settings = sent.value.post_data_json["set"]
    assert settings["multipath.endpoints"] == [
        {"host": "ue2", "interface": "lte0", "flags": ["backup"]}
    ]
    assert settings["multipath.limits.subflows"] == 1
    assert "multipath.limits.add_addr_accepted" not in settings


def test_lists_of_the_topology_are_edited_and_the_drawing_follows(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/testbed_wifi_lte")
    until(page, lambda: drawn(page, "ue4"))
    page.click("#topology-box summary")
    page.click("text=Add to users")
    until(page, lambda: drawn(page, "ue5"))
    assert not serious_faults(page)
    assert page.locator("#multipath input").count() == 5
    page.click("#topology-users tbody tr:first-child button")
    until(page, lambda: not drawn(page, "ue1"))
    page.select_option("#engine", "testbed")
    page.uncheck("#multipath input[value=ue2]")
    until(page, lambda: page.locator("#drawing .air").count() == 5)  # ue3 has two, the others one
    page.goto(f"{address}/scenarios/two_paths")
    until(page, lambda: drawn(page, "path2"))
    page.click("#topology-box summary")
    form = page.inner_text("#topology-params")
    assert form.count("ms") == 3  # delay, jitter and the bins of a trace, each once
    assert "mbps" not in form
    inside = "document.documentElement.scrollWidth <= window.innerWidth"
    assert page.evaluate(inside)
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, lambda: page.evaluate(inside))
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.click("text=Add to paths")
    until(page, lambda: drawn(page, "path3"))
    page.fill("#topology-paths tbody tr:nth-child(3) input[name=rate_mbps]", "7.5")
    page.press("#topology-paths tbody tr:nth-child(3) input[name=rate_mbps]", "Tab")
    label = "#drawing [data-id='path3'] .figures"
    until(page, lambda: page.text_content(label).startswith("7.5 Mb/s"))
    page.select_option("#topology-paths tbody tr:nth-child(3) select[name='queue.kind']", "codel")
    page.fill("#topology-paths tbody tr:nth-child(3) input[name=rate_mbps]", "6.5")
    page.press("#topology-paths tbody tr:nth-child(3) input[name=rate_mbps]", "Tab")
    until(page, lambda: page.text_content(label).startswith("6.5 Mb/s"))
    page.goto(f"{address}/scenarios/pooling")
    page.click("#topology-box summary")
    page.fill("#topology-middle_mbps", "3, 9, 9, 9")
    page.press("#topology-middle_mbps", "Tab")
    until(page, lambda: "3 Mb/s" in page.text_content("#drawing"))


def test_several_strategies_and_seeds_are_one_batch_and_two_compared_groups(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/testbed_wifi_lte")
    page.select_option("#engine", "testbed")
    page.fill("#duration", "5")
    page.click("#several summary")
    page.check("#strategies input[value=none]")
    page.check("#strategies input[value=meter_throttling]")
    page.fill("#repeats", "2")
    page.select_option("#vary select", "duration_s")
    page.fill("#vary input", "4, 5")
    until(page, lambda: "8 runs: 2 strategies" in page.inner_text("#count"))
    page.click("#vary button")
    until(page, lambda: "4 runs: 2 strategies" in page.inner_text("#count"))
    until(page, lambda: "4 runs, 4 to make" in page.inner_text("#estimate"))
    page.click("text=Start 4 runs")
    page.wait_for_url("**/runs")
    until(page, lambda: "4 of 4 done" in page.inner_text("#batches"))
    assert page.locator("#batches li").count() == 1
    page.click("#batches a:has-text('Compare')")
    page.wait_for_selector("#metrics tbody tr")
    assert page.locator(".legend").first.inner_text().count("2 runs") == 2
    lines = "() => document.querySelector('#chart-total .plot')?.data?.length ?? 0"
    until(page, lambda: page.evaluate(lines) == 4)  # a mean and a band for each group
    assert "all users: throughput, Mb/s" in page.inner_text("#metrics")
    assert "_mbps" not in page.inner_text("#metrics")
    assert "n = 2" in page.inner_text("#metrics thead")


def test_two_keys_lead_from_the_form_to_a_heat_map(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/testbed_wifi_lte")
    page.select_option("#engine", "testbed")
    page.click("#several summary")
    page.check("#strategies input[value=meter_throttling]")
    page.select_option("#vary select", "strategy.cth")
    page.fill("#vary input", "0.3..0.5..0.1")
    page.click("#more-keys")
    second = page.locator("#vary > :nth-child(2)")
    second.locator("select").select_option("duration_s")
    assert second.locator(".help").inner_text() == "duration_s: 0 to 86400 s; now 60"
    second.locator("input").fill("4,5")
    page.select_option("#keep", "results")
    page.click("#sweep-box summary")  # one click: nothing moves when the field loses the focus
    assert page.is_visible("#sweep")
    until(page, lambda: page.inner_text("#count").startswith("6 runs: 6 combinations of values"))
    assert "#several" not in str(serious_faults(page))
    page.click("text=Start 6 runs")
    page.wait_for_url("**/runs")
    until(page, lambda: "6 of 6 done" in page.inner_text("#batches"))
    page.click("#batches a:has-text('Compare')")
    kind = "() => document.querySelector('#grid-panels .plot')?.data?.[0]?.type"
    until(page, lambda: page.evaluate(kind) == "heatmap")
    size = "() => document.querySelector('#grid-panels .plot').data[0].z.map(row => row.length)"
    assert sorted(page.evaluate(size)) in ([3, 3], [2, 2, 2])


def latest_marks(client, run_id):
    """Numbers of the latest marks of the first two suggestions. Marks are numbered from 1 in the
    order of events."""
    events = client.get(f"/api/runs/{run_id}/charts").json["events"]
    titles = [each["title"] for each in events if each["mark"] == "line"]
    changes = (
        "strategy meter_throttling instead of none",
        "rate of ue3 at wifi1 when alone there: 6 Mb/s instead of 19.1",
    )
    return [str(max(n for n, title in enumerate(titles, 1) if title == each)) for each in changes]


@pytest.mark.long
def test_suggestions_are_clicked_in_all_orders(page, address, client):  # noqa: F811
    """This engine refuses the third suggestion. Suggestions and marks have the same numbers."""
    start_run(page, address)
    run_id = page.url.rpartition("/")[2]
    undo = {"strategy": "none", "cell.wifi1.ue3.rate_mbps": 19.1}
    until(page, lambda: page.locator("#try .press:enabled").count() == 3)
    for order in itertools.permutations(range(3)):
        for n in order:
            kind = "refused" if n == 2 else "measuring, #try li.done"
            page.click(f"#try li >> nth={n} >> .press")
            page.wait_for_selector(f"#try li.{kind}")
            if n < 2:  # what has been made is already so
                until(page, lambda n=n: page.is_disabled(f"#try li >> nth={n} >> .press"))
        expected = [*latest_marks(client, run_id), "!"]
        until(page, lambda expected=expected: page.evaluate(NUMBERS) == expected)
        for target, value in undo.items():
            body = {"target": target, "value": value}
            assert client.post(f"/api/runs/{run_id}/flips", json=body).status_code == 202
        until(page, lambda: page.locator("#try .press:enabled").count() == 3)
    client.post(f"/api/runs/{run_id}/stop")


def test_a_suggestion_that_would_change_nothing_says_so(page, address, client):  # noqa: F811
    body = START | {"strategy": "meter_throttling", "speed": 10}
    run_id = client.post("/api/runs", json=body).json["id"]
    page.goto(f"{address}/runs/{run_id}")
    until(page, lambda: "Already so" in page.inner_text("#try li.already"))
    assert page.is_disabled("#try li.already .press")
    client.post(f"/api/runs/{run_id}/flips", json={"target": "strategy", "value": "none"})
    until(page, lambda: page.locator("#try li.already").count() == 0)
    page.click("#try li >> nth=0 >> .press")
    page.wait_for_selector("#try li.measuring, #try li.done")
    client.post(f"/api/runs/{run_id}/stop")


def test_the_page_says_by_how_much_a_run_is_slower_than_real_time(page, address, client):  # noqa: F811
    body = START | {"seed": testbed.SLOW_SEED, "speed": 1}
    run_id = client.post("/api/runs", json=body).json["id"]
    page.goto(f"{address}/runs/{run_id}")

    def speed():
        found = re.search(r"Slower than real time: ([\d.]+) simulated", page.inner_text("#slow"))
        return float(found[1]) if found else 0.0

    until(page, lambda: page.is_visible("#slow") and 0 < speed() <= 0.6)
    assert page.inner_text(".foot").startswith("Simulator: ")
    client.post(f"/api/runs/{run_id}/stop")
    until_true(lambda: client.get(f"/api/runs/{run_id}").json["state"]["over"])
    until(page, lambda: not page.is_visible("#slow"))


def test_traffic_is_edited_and_what_nobody_touched_stays(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/testbed_wifi_lte")
    before = page.evaluate("JSON.parse(document.getElementById('about').textContent).traffic")
    page.click("#traffic-box summary")
    entries = page.locator("#traffic .entry")
    count = entries.count()
    page.click("#add-flow")
    last = entries.nth(count)
    assert entries.count() == count + 1
    last.locator("select").first.select_option("ue1")
    last.locator("select").nth(1).select_option("rpc")
    last.get_by_label("size of an answer", exact=True).fill("80")
    assert not serious_faults(page)
    page.select_option("#engine", "testbed")
    with page.expect_request(lambda each: each.method == "POST") as sent:
        page.click("#start-button")
    found = sent.value.post_data_json["set"]["traffic"]
    added = found[-1]
    assert (added["user"], added["kind"], added["answer_kb"]) == ("ue1", "rpc", 80)
    users = {each["user"] for each in found[:-1]}
    assert users in ({"all"}, {each["user"] for each in before})


def test_traffic_that_was_removed_is_not_sent_and_new_users_are_offered(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/call_and_download")
    page.click("#traffic-box summary")
    page.get_by_label("Remove traffic 2").click()
    page.click("#topology-box summary")
    page.click("text=Add to users")
    offered = page.locator("#flow-1-user option").all_text_contents()
    assert offered == ["ue1", "ue2", "ue3", "all users"]
    page.select_option("#engine", "testbed")
    with page.expect_request(lambda each: each.method == "POST") as sent:
        page.click("#start-button")
    found = sent.value.post_data_json["set"]["traffic"]
    assert {each["kind"] for each in found} == {"call"}
    assert [each["user"] for each in found] == ["ue1", "ue3"]  # a new user does as the last one


def test_equal_traffic_of_all_users_is_one_entry(page, address):  # noqa: F811
    page.goto(f"{address}/scenarios/incast_on_a_fat_tree")
    page.click("#traffic-box summary")
    assert page.locator("#traffic .entry").count() == 1
    assert page.locator("#flow-1-user").input_value() == "all"
