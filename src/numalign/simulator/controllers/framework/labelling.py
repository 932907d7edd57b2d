"""Label selectors and node selectors of objects in the embedded API server, as functions over labels.

The workload controllers, budgets and claims call this. `api.objects` has the rules; selectors in query strings are the
API server's own."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from numalign.api.decode.decode import decode
from numalign.api.objects import nodematching, selectors
from numalign.api.objects.pod import PodSpec
from numalign.api.objects.selectors import LabelSelector
from numalign.simulator.trees import Tree

Labels = Mapping[str, str]
Selects = Callable[[Labels], bool]

NAME_FIELD: Final = nodematching.NAME_FIELD


def selector(written: Tree | None) -> Selects:
    """Of a workload: absent or empty it selects nothing."""
    found = decode(LabelSelector, written or {})
    return partial(selectors.matches, None if found.is_empty else found)


def everything_if_empty(written: Tree | None) -> Selects:
    """Of a disruption budget: `{}` selects all pods of the namespace, an absent one none."""
    return partial(selectors.matches, None if written is None else decode(LabelSelector, written))


def node_matches(spec: Tree, node: Tree) -> bool:
    """Whether nodeSelector and required node affinity of a pod's spec let it onto the node."""
    metadata = node["metadata"]
    pod = decode(PodSpec, {name: spec[name] for name in ("nodeSelector", "affinity") if spec.get(name)})
    return nodematching.allows(pod.node_selector, pod.affinity, metadata["name"], metadata.get("labels") or {})


def required_affinity(spec: Tree) -> Tree | None:
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Tree | None = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required
