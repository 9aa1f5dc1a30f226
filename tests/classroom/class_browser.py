"""Browsers that visit a class on its real server."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

from dashboard.base.serving import server
from dashboard.serve import listen

CURVE = """
  - predict: {id: shape, ask: "Draw it.", curve: {run: both, path: user.ue1.mbps, unit: Mb/s, maximum: 20}}
  - run:"""
DRAWN = """(id) => [...document.querySelectorAll(`#${id} .plot`)].filter(each => each.data)
  .flatMap(each => each.data.map(line => line.name))"""
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"


def with_curve(text):
    """The small worksheet with a curve to draw, and a prediction that is drawn over the run."""
    text = text.replace("\n  - run:", CURVE, 1)
    return text.replace("maximum: 40", "maximum: 40, run: both, path: user.ue1.mbps")


@contextmanager
def served(app):
    """Serve a class with its real server, and start and end its runs; yield the address."""
    sock = listen(None)
    waitress = server(app, sock)
    thread = threading.Thread(target=waitress.run, daemon=True)
    thread.start()
    app.extensions["conductor"].start()
    yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    app.extensions["conductor"].stop()
    waitress.close()
    waitress.task_dispatcher.shutdown()
    thread.join(5)


class Faults(list):
    """Errors that pages log, and their requests to other machines."""

    def watch(self, page):
        page.on("pageerror", lambda error: self.append(str(error)))
        page.on("console", self._logged)
        page.on("request", lambda request: self._requested(request.url))
        return page

    def _logged(self, message):
        if message.type == "error":
            self.append(message.text)

    def _requested(self, url):
        parts = urlsplit(url)
        if parts.scheme.startswith(("http", "ws")) and parts.hostname != "127.0.0.1":
            self.append(url)


def new_page(browser, faults, width=1280, height=1000, cookies=()):
    """A page in a browser context of its own, with these cookies."""
    context = browser.new_context(viewport={"width": width, "height": height})
    context.add_cookies(list(cookies))
    context.set_default_timeout(120_000)
    return faults.watch(context.new_page())


def until(page, condition, seconds=120):
    """Poll a condition; the pages forbid `eval`, so Playwright cannot wait for a function."""
    for _ in range(10 * seconds):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not within {seconds} s")


def join(page, address, code, *names):
    """Join the class with one name, or with several on one seat."""
    page.goto(f"{address}/?code={code}")
    page.fill("#name-1", names[0])
    for n, name in enumerate(names[1:], 2):
        page.click("#pair")
        page.fill(f"#name-{n}", name)
    page.click("#join button[type=submit]")
    page.wait_for_url("**/seat")


def open_sheet(page, address, name):
    page.goto(f"{address}/seat/{name}")
    page.click("#open")
    page.wait_for_selector(".step")


def state(page, step):
    return page.get_attribute(f"#{step}", "data-state")
