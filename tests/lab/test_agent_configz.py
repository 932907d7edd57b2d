"""The agent asks a real kubelet for its configuration, over TLS with the kubelet's own certificate."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

from numalign.api.nrt import normalise
from numalign.kube import errors
from numalign.kube.resources import TOPOLOGIES
from numalign.lab import node as nodes
from numalign.lab.node import LabNode
from tests.lab import agents, sockets
from tests.lab.fleet import TOLD as NODE
from tests.lab.live import Live

POLICY = "topologyManagerPolicy"
CONFIGZ = "--configz"


@contextlib.contextmanager
def edited(node: LabNode) -> Iterator[None]:
    """The configuration file says what the kubelet has not read: it was not started again."""
    file = node.place.root / nodes.CONFIG.rpartition("/")[2]
    before = file.read_text()
    file.write_text(json.dumps(json.loads(before) | {POLICY: "none"}))
    try:
        yield
    finally:
        file.write_text(before)


def until_reported(live: Live, policy: str) -> None:
    """In a report of an agent that began after the last one was deleted."""
    live.run(live.client.delete(TOPOLOGIES.at(NODE)))

    async def reported() -> bool:
        try:
            found = normalise.normalise(await live.client.get(TOPOLOGIES.at(NODE)))
        except errors.NotFound:
            return False
        return found.manager.policy == policy

    live.awaited(reported, f"no report with policy {policy}")


def test_the_agent_reports_what_the_kubelet_runs_with_whatever_its_file_says(single: Live) -> None:
    agents.grant(single, NODE, CONFIGZ)
    (server,) = sockets.of(single.node(NODE).kubelet)
    flags = (CONFIGZ, "--kubelet-address", f"{server.address}:{server.port}")
    with edited(single.node(NODE)), agents.instead(single, NODE, *flags):
        until_reported(single, "single-numa-node")
