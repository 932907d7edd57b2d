"""A campaign in direct mode is judged by what containerd has: double-booked CPUs, and containers that differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from msgspec import structs

from numalign.agent.enforce import messages
from numalign.agent.enforce.messages import RuntimeContainer, Sandbox
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.directresult import ContainerResult
from numalign.api.decode import cpuset
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodSpec
from numalign.lab.campaign import directrun, directscript
from numalign.lab.campaign.directrun import Containers, DirectCampaign
from numalign.lab.campaign.history import HistoryLine
from numalign.lab.campaign.run import CampaignOptions
from tests.unit.agent.enforce import nodes
from tests.unit.agent.enforce.nodes import own

PAIR = directscript.nodes()[0]


def sandbox(name: str, *parts: ContainerResult) -> Sandbox:
    text = nodes.decision(f"uid-{name}", *parts, node="pair")
    annotations = {"numalign.io/resource-status": text}
    return structs.replace(nodes.sandbox(name), annotations=annotations)


def running(pod: Sandbox, container: str, cpus: str, mems: str = "") -> RuntimeContainer:
    return nodes.made(pod, container, state=messages.RUNNING, cpus=cpus, mems=mems)


def seen(*made: tuple[Sandbox, RuntimeContainer]) -> Containers:
    found = Containers(cast(Any, SimpleNamespace(name="pair", spec=PAIR)))
    found.pods = {pod.id: pod for pod, _ in made}
    found.running = [container for _, container in made]
    return found


def bound(pod: Sandbox) -> Pod:
    meta = ObjectMeta(name=pod.name, namespace="default", uid=pod.uid, annotations=dict(pod.annotations))
    return Pod(metadata=meta, spec=PodSpec(node_name="pair"))


def test_cpus_of_two_pods_are_double_booked_where_both_have_them_for_themselves() -> None:
    first, second = sandbox("a", own("main", "1-4", (0,))), sandbox("b", own("main", "4-5", (0,)))
    both = (first, running(first, "main", "1-4")), (second, running(second, "main", "4-5"))
    assert seen(*both).overlaps() == ["b/main and a/main have CPUs 4"]
    # It waits in the shared pools until the other one is gone.
    assert seen(both[0], (second, running(second, "main", "6-7"))).overlaps() == []


def differs(has: str, said: AppliedContainer | None, mems: str = "0") -> str:
    pod = sandbox("a", own("main", "1-4", (0,), mems="0"))
    campaign = DirectCampaign(cast(Any, SimpleNamespace(nodes={})), CampaignOptions(minutes=1, seed=1), lambda _: None)
    found = seen((pod, running(pod, "main", has, mems)))
    return campaign._differs(bound(pod), found, cpuset.parse("1-4"), [said] if said is not None else [])


def test_a_container_has_to_have_what_its_decision_says_and_the_agent_has_to_say_so() -> None:
    good = AppliedContainer(uid="uid-a", container="main", cpus=cpuset.parse("1-4"), mems=1)
    assert differs("1-4", good) == ""
    assert differs("", good) == "main has CPUs of the whole node instead of 1-4"
    assert differs("1-4", good, mems="") == "main has memory of zones of the whole node instead of 0"
    assert differs("1-4", None) == "main is not acknowledged"
    assert differs("1-4", structs.replace(good, failure="no")) == "main is acknowledged with no"


def test_a_pod_that_is_gone_without_a_request_is_lost() -> None:
    lines = [
        HistoryLine(at=1.0, what="deletion-requested", name="a"),
        HistoryLine(at=2.0, what="gone", name="a"),
        HistoryLine(at=3.0, what="gone", name="b"),
    ]
    assert [each.pod for each in directrun._lost(lines)] == ["b"]
