"""Clusters in a few lines, and what a rule says about every node of them: the words of the rules' tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from numalign.api.decode import decode
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.rule import FITS, FilterRule, Refusal, Rows, ScoreRule
from numalign.placement.rules.totals import Totals

ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def node(name: str, **fields: Any) -> Node:
    """Fields of the spec and of the status, and labels, by their names on the wire."""
    spec = {key: fields[key] for key in ("taints", "unschedulable") if key in fields}
    status = {"allocatable": fields.get("allocatable", ROOMY)}
    status |= {key: fields[key] for key in ("images", "declaredFeatures") if key in fields}
    metadata = {"name": name, "labels": fields.get("labels", {})}
    return decode.decode(Node, {"metadata": metadata, "spec": spec, "status": status})


def pod(requests: Mapping[str, str] | None = None, *, name: str = "pod", **spec: Any) -> Pod:
    """A pod with one container, unless the spec says otherwise."""
    status = spec.pop("status", {})
    containers = [{"name": "main", "image": "app", "resources": {"requests": dict(requests or {})}}]
    whole = {"metadata": {"name": name, "uid": name}, "spec": {"containers": containers} | spec, "status": status}
    return decode.decode(Pod, whole)


def world(nodes: Sequence[Node], pods: Mapping[str, Sequence[Pod]] | None = None) -> ClusterState:
    """Nodes in the order of their rows; pods by the name of the node that they are on."""
    made = ClusterState()
    for row, node in enumerate(nodes):
        made.put_node(row, node)
    for name, there in (pods or {}).items():
        for number, pod in enumerate(there):
            made.put_pod(f"{name}/{number}", made.rows[name], pod)
    return made


def totals(offered: Sequence[int], used: Sequence[int]) -> Totals:
    """Of one node, by column."""
    made = Totals(1)
    made.allocatable[: len(offered), 0], made.requested[: len(used), 0] = offered, used
    return made


def refusals(rule: FilterRule[Any], pod: Pod, world: ClusterState) -> list[Refusal | None]:
    """By node in the order of rows: None where the pod fits."""
    prepared = rule.prepare(pod, world)
    if prepared is None:
        return [None] * len(world.rows)
    if isinstance(prepared, Refusal):
        return [prepared] * len(world.rows)
    codes = rule.filter(prepared)[: len(world.rows)].tolist()
    assert codes == [rule.filter_row(prepared, row, (), ()) for row in range(len(world.rows))]
    return [None if code == FITS else prepared.refusals[code] for code in codes]


def fitting(rule: FilterRule[Any], pod: Pod, world: ClusterState) -> list[str]:
    """Names of the nodes that the rule lets through."""
    return [world.names[row] for row, refusal in enumerate(refusals(rule, pod, world)) if refusal is None]


def scores(rule: ScoreRule[Any], pod: Pod, world: ClusterState) -> list[int] | None:
    """Raw, by node; None: the rule is skipped."""
    rows = all_rows(world)
    prepared = rule.prepare_score(pod, world, rows)
    return None if prepared is None else rule.score(prepared, rows).tolist()


def normalized(rule: ScoreRule[Any], pod: Pod, world: ClusterState) -> list[int]:
    rows = all_rows(world)
    prepared = rule.prepare_score(pod, world, rows)
    scores: list[int] = rule.normalized(prepared, rule.score(prepared, rows)).tolist()
    return scores


def all_rows(world: ClusterState) -> Rows:
    return np.flatnonzero(world.present)
