"""The start-up taint on a real node: its kubelet registers it with the taint, and the agent removes it."""

from __future__ import annotations

from numalign.agent.publish import startuptaint
from numalign.deploy import rights
from numalign.kube.resources import NODES
from tests.lab import agents
from tests.lab.fleet import TOLD as NODE
from tests.lab.live import Live


def tainted(live: Live) -> bool:
    return startuptaint.KEY in {taint.key for taint in live.node_object(NODE).spec.taints}


def test_a_node_keeps_its_startup_taint_until_an_agent_that_removes_it_has_reported(single: Live) -> None:
    agents.grant(single, NODE, rights.UNTAINT)
    assert tainted(single)
    with agents.instead(single, NODE, rights.UNTAINT):

        async def removed() -> bool:
            node = await single.client.get(NODES.at(NODE))
            return startuptaint.KEY not in {taint.key for taint in node.spec.taints}

        assert single.awaited(removed, "the taint stays")
