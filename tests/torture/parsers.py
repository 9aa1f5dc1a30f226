"""Campaigns against what reads inputs: each parser returns a value or raises its own error."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from controller import agent_messages, datagrams, host_messages
from controller.errors import ControllerError, MessageRefused
from controller.pox_ext import frames
from controller.pox_ext import openflow13_messages as openflow
from lab.errors import RequestError
from lab.run import inbox
from lab.scenario import loading, targets, yaml_text
from lab.scenario.loading import Overrides
from torture import inputs
from torture.campaign import Campaign, Counts, Failed

CORPUS = Path(__file__).parent / "corpus"
KEY = "0123456789abcdef" * 2
BATCH = 200


class Yaml(Campaign):
    name = "yaml"
    what = "scenario files and --set"
    hangs_after_s = 20.0

    def prepare(self) -> None:
        self.files = [path.read_bytes() for path in sorted(loading.FOLDER.glob("*.yaml"))]

    def trial(self, rng: random.Random) -> Counts:
        path, keys = self.folder / "scenario.yaml", ("topology", "events", "strategy.name", "title")
        for _ in range(20):
            path.write_bytes(inputs.changed(rng, rng.choice(self.files), self.files))
            refused_or_read(lambda: yaml_text.read(path))
            refused_or_read(lambda: loading.load(str(path)))
        for value in inputs.examples(inputs.VALUES, rng, 20):
            key = rng.choice(
                (*keys, "traffic.1.user", "duration_s", "rate_scale", "multipath", "seed")
            )
            try:
                text = yaml.safe_dump(value, default_flow_style=True).strip()
            except (ValueError, yaml.YAMLError):
                text = repr(value)
            options = Overrides(settings=(f"{key}={text}",))
            refused_or_read(lambda given=options: loading.load("testbed_wifi_lte", given))
        return Counts(60)


class Flips(Campaign):
    name = "flips"
    what = "changes of targets"

    def prepare(self) -> None:
        self.scenarios = [loading.load(name) for name in ("testbed_wifi_lte", "fat_tree", "campus")]

    def trial(self, rng: random.Random) -> Counts:
        scenario = rng.choice(self.scenarios)
        known = [*targets.targets(scenario), "strategy", "cc", "nothing", "strategy."]
        for value in inputs.examples(inputs.VALUES, rng, BATCH):
            target = rng.choice(known)
            try:
                checked = targets.check_flip(scenario, target, value)
                targets.change(scenario, target, checked)
                scenario = targets.after(scenario, target, checked)
            except RequestError as error:
                short(str(error))
        return Counts(BATCH)


class Inbox(Campaign):
    name = "inbox"
    what = "files in the inbox of a run, and messages to POX"

    def trial(self, rng: random.Random) -> Counts:
        box = self.folder / "inbox"
        box.mkdir(exist_ok=True)
        real = [
            b'{"target": "link.path1.loss", "value": 0.05}',
            b'{"control": "speed", "value": 10}',
            b'{"seq": 3, "kind": "params", "value": {"cth": 0.3}}',
            b'{"seq": 5, "kind": "link", "value": {"link": "wifi", "up": false}}',
            b'{"seq": 4, "kind": "strategy", "value": {"name": "none", "params": {}}}',
        ]
        texts = [inputs.changed(rng, rng.choice(real), real) for _ in range(BATCH)]
        for n, text in enumerate(texts):
            (box / f"{n:04d}.json").write_bytes(text)
            try:
                agent_messages.read_inbox_message(text)
            except MessageRefused:
                continue
        for _, message, problem in inbox.receive(self.folder):
            if bool(message) == bool(problem):
                raise Failed("a message without a verdict")
            json.dumps(message, ensure_ascii=False).encode()
        if list(box.iterdir()):
            raise Failed("a file is left in the inbox")
        return Counts(2 * BATCH)


class Datagrams(Campaign):
    name = "datagrams"
    what = "reports and commands over UDP, with and without the key"

    def trial(self, rng: random.Random) -> Counts:
        values = [
            {"kind": "ap", "seq": 1, "ap": "wifi1", "mac_occupancy": 1.0, "stations": {"ue1": {}}},
            {"v": 2, "seq": 1, "host": "ue3", "token": "3f2a91c0", "subflows": []},
            {"v": 2, "seq": 1, "host": "ue3", "loss": {"10.1.0.3": 0.0}, "subflows": []},
        ]
        real = [datagrams.seal(each, KEY) for each in values]
        prefix = f"{KEY}\n".encode()
        for _ in range(BATCH):
            whole = rng.choice(real)
            bad = inputs.changed(rng, whole, real)
            for datagram in (bad, prefix + inputs.changed(rng, whole[len(prefix) :], real)):
                for read in (
                    agent_messages.read_ap_report,
                    host_messages.read_command,
                    host_messages.read_report,
                ):
                    try:
                        read(datagram, KEY)
                    except MessageRefused:
                        continue
                    if not datagram.startswith(prefix):
                        raise Failed(f"accepted without the key: {datagram[:100]!r}")
        return Counts(6 * BATCH)


class Mptcp(Campaign):
    name = "mptcp"
    what = "TCP options and Ethernet frames"

    def trial(self, rng: random.Random) -> Counts:
        real = [
            bytes.fromhex("1e0c01810123456789abcdef"),
            bytes.fromhex("1e1401810123456789abcdef0123456789abcdef"),
            bytes.fromhex("1e0c1001000000010000002a"),
            bytes.fromhex("1e1010010123456789abcdef0123456701"),
            bytes.fromhex("1e0351") + bytes.fromhex("0101080a0000000100000002"),
        ]
        ip = bytes.fromhex("45000034000040004006000a0a0000010a010003")
        tcp = bytes.fromhex("138913890000000100000002800200000000000002040578")
        ethernet = bytes.fromhex("0200000000010200000000020800")
        for _ in range(BATCH):
            option = inputs.changed(rng, rng.choice(real), real)
            frames.mptcp_option(option)
            frame = frames.parse(inputs.changed(rng, ethernet + ip + tcp + option, real))
            payload = frame.payload if frame else None
            if isinstance(payload, frames.Ip) and payload.options:
                frames.mptcp_option(payload.options)
        return Counts(2 * BATCH)


class OpenFlow(Campaign):
    name = "openflow"
    what = "replies of bridges, from a corpus of real ones"

    def prepare(self) -> None:
        texts = sorted((CORPUS / "openflow").glob("*.hex"))
        self.corpus = [bytes.fromhex(path.read_text()) for path in texts]
        self.readers: list[Callable[[bytes], Any]] = [
            *(openflow.flows, openflow.flow_counts, openflow.meter_count, openflow.ports),
            *(openflow.meter_rate_bps, openflow.data_of),
        ]

    def trial(self, rng: random.Random) -> Counts:
        for _ in range(BATCH):
            body = inputs.changed(rng, rng.choice(self.corpus), self.corpus)
            for read in self.readers:
                try:
                    read(body)
                except struct.error as error:
                    raise Failed(f"{read.__name__}({body.hex()}): {error}") from error
        return Counts(len(self.readers) * BATCH)


def refused_or_read(load: Callable[[], Any]) -> None:
    try:
        load()
    except (RequestError, ControllerError) as error:
        short(str(error))


def short(text: str) -> None:
    if len(text) > 20_000:
        raise Failed(f"an error of {len(text)} characters: {text[:200]}")


ALL = (Yaml, Flips, Inbox, Datagrams, Mptcp, OpenFlow)
