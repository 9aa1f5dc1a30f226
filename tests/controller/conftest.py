"""A network of bridges in user space, built once per file and reset before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from userspace_network import Network


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with Network(tmp_path_factory.mktemp("network")) as network:
        yield network


@pytest.fixture
def network(built: Network) -> Network:
    built.reset()
    return built
