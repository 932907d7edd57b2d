"""A history with its objects decoded: a cluster and its events, step by step.

`playing` replays it. Recorded answers are left out, so that no replay can use them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import structs

from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.oracle.ask import Case
from numalign.oracle.generate.clusterpods import PROFILE
from numalign.oracle.plugin import oldqos


class Step(Wire, frozen=True):
    """One event; its fields depend on `op` (docs/develop/oracle-reference.md)."""

    op: str
    pod: Pod = Pod()
    node: str = ""
    nodes: tuple[str, ...] | None = None
    nrt: NodeResourceTopology = NodeResourceTopology()


class History(Wire, frozen=True):
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    profile_names: tuple[str, ...] = (PROFILE,)
    nodes: tuple[Node, ...] = ()
    nrts: tuple[NodeResourceTopology, ...] = ()
    pods: tuple[Pod, ...] = ()
    steps: tuple[Step, ...] = ()


def read(raw: Case) -> History:
    return decode.decode(History, msgspec.json.encode(raw))


def with_old_classes(history: History, raw: Case) -> History:
    """The same history, with the QoS class of Kubernetes 1.34 written into pods where it differs."""
    pods = tuple(oldqos.stamped(*each) for each in zip(history.pods, raw.get("pods") or (), strict=True))
    steps = tuple(_stamped(*each) for each in zip(history.steps, raw["steps"], strict=True))
    is_same = pods == history.pods and steps == history.steps
    return history if is_same else structs.replace(history, pods=pods, steps=steps)


def _stamped(step: Step, raw: Case) -> Step:
    pod = oldqos.stamped(step.pod, raw["pod"]) if "pod" in raw else step.pod
    return step if pod is step.pod else structs.replace(step, pod=pod)
