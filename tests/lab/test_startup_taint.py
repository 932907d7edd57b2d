"""The start-up taint on a real node: its kubelet registers it with the taint, and the agent removes it."""

from __future__ import annotations

from typing import Any

from numalign.agent.publish import startuptaint
from numalign.deploy import rights
from numalign.deploy.rights import Holder
from numalign.kube import resources
from numalign.kube.resources import NODES
from numalign.lab import accounts
from numalign.lab.accounts import AnyObject
from tests.lab import agents
from tests.lab.fleet import TOLD as NODE
from tests.lab.live import Live


def tainted(live: Live) -> bool:
    return startuptaint.KEY in {taint.key for taint in live.node_object(NODE).spec.taints}


def grant(live: Live) -> None:
    """What the option needs beyond the rights of an agent of a lab, under a name of its own."""
    needed = [right for right in rights.AGENT if right.option == rights.UNTAINT]
    role, binding = rights.roles(Holder("User", accounts.agent_user(NODE)), needed, NODE)
    for thing in (role, binding):
        name = {"name": "untaint"}
        renamed: dict[str, Any] = {**thing, "metadata": name}
        if "roleRef" in thing:
            renamed["roleRef"] = {**thing["roleRef"], **name}
        resource = resources.of(rights.API_VERSION, f"{thing['kind'].lower()}s", thing["kind"], AnyObject)
        live.run(live.client.create(resource.everywhere(), renamed))


def test_a_node_keeps_its_startup_taint_until_an_agent_that_removes_it_has_reported(single: Live) -> None:
    grant(single)
    assert tainted(single)
    with agents.instead(single, NODE, rights.UNTAINT):

        async def removed() -> bool:
            node = await single.client.get(NODES.at(NODE))
            return startuptaint.KEY not in {taint.key for taint in node.spec.taints}

        assert single.awaited(removed, "the taint stays")
