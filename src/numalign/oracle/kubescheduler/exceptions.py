"""Deliberate differences between numalign's rules and kube-scheduler's plugins.

`judging` calls it. An entry is an anchor of docs/develop/oracle-scheduler.md. Its rule looks at the case and the real
answer, never at ours, so that it cannot hide an error of ours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.oracle.divergence import Difference
from numalign.placement.rules.nodes import hostports

Raw = Mapping[str, Any]

WHAT_IF: Final = re.compile(r"what_if\[(\d+)\]\.(\w+)")
NOT_OWNED: Final = re.compile(r"PVC \S+ was not created for pod \S+ \(pod is not owner\)")


class Exceptional(Struct, frozen=True):
    """One entry: the places of an answer that it concerns, and the rule that decides whether it applies."""

    anchor: str
    places: re.Pattern[str]
    applies: Callable[[Raw, Raw, Difference], bool]


def entry(case: Raw, question: Raw, difference: Difference) -> str | None:
    """The entry for a difference in the answer to this question."""
    for each in ENTRIES:
        if each.places.match(difference.path) and each.applies(case, question, difference):
            return each.anchor
    return None


def _shares_a_port(case: Raw, question: Raw, difference: Difference) -> bool:
    """Two pods of the node have the same host port, and one of them is removed."""
    asked = WHAT_IF.match(difference.path)
    assert asked is not None, "the place is one of what_if"
    change = question["what_if"][int(asked[1])]
    ports = {pod["metadata"]["uid"]: _ports(pod) for pod in _on(case, change["node"])}
    held = Counter(port for of_pod in ports.values() for port in of_pod)
    return any(held[port] > 1 for uid in change.get("removed") or () for port in ports[uid])


def _on(case: Raw, node: str) -> Iterator[Raw]:
    return (pod for pod in case["snapshot"].get("pods") or () if pod["spec"].get("nodeName") == node)


def _ports(pod: Raw) -> frozenset[hostports.HostPort]:
    return frozenset(hostports.wanted(decode.decode(Pod, pod)))


def _cannot_count(case: Raw, question: Raw, difference: Difference) -> bool:
    """NodeVolumeLimits failed on a node, because a claim has the name of an ephemeral volume's claim and another
    owner."""
    statuses = (said.get("NodeVolumeLimits") for said in question["answer"]["filters"].values())
    return any(
        status is not None and status["code"] == "Error" and NOT_OWNED.fullmatch(status["reasons"][0])
        for status in statuses
    )


def _has_claims(case: Raw, question: Raw, difference: Difference) -> bool:
    return bool(question["pod"]["spec"].get("resourceClaims"))


def _asks_for_devices(case: Raw, question: Raw, difference: Difference) -> bool:
    """A container requests an extended resource that a DeviceClass provides."""
    classes = case["snapshot"].get("deviceClasses") or ()
    spec = question["pod"]["spec"]
    containers = (*spec["containers"], *(spec.get("initContainers") or ()))
    asked = {name for each in containers for name in each.get("resources", {}).get("requests", {})}
    return any(each["spec"].get("extendedResourceName") in asked for each in classes)


ANYWHERE: Final = re.compile("")

ENTRIES: Final = (
    Exceptional("resource-claims", ANYWHERE, _has_claims),
    Exceptional("device-classes", ANYWHERE, _asks_for_devices),
    Exceptional("ports-twice", re.compile(r"what_if\[\d+\]\.NodePorts"), _shares_a_port),
    Exceptional(
        "claim-not-owned",
        re.compile(r"(filters\.\w+|what_if\[\d+\])\.NodeVolumeLimits|verdicts\.|scores"),
        _cannot_count,
    ),
)
