"""Generates namespaces, services and controllers, for default topology spread and pod affinity."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance
from numalign.oracle.kubescheduler.generate import words
from numalign.oracle.kubescheduler.generate.words import Object

KINDS: Final = {
    "ReplicaSet": ("replicaSets", "apps/v1"),
    "StatefulSet": ("statefulSets", "apps/v1"),
    "ReplicationController": ("replicationControllers", "v1"),
}


def namespaces(rng: Random) -> list[Object]:
    return [
        {"metadata": {"name": name, "labels": words.labels(rng, words.NAMESPACE_LABELS, 0.6)}}
        for name in words.NAMESPACES
    ]


def service(rng: Random, number: int) -> Object:
    spec: Object = {"selector": words.one_label(rng, words.POD_LABELS)} if chance(rng, 0.9) else {}
    return {"metadata": {"name": f"s{number}", "namespace": rng.choice(words.NAMESPACES)}, "spec": spec}


def controller(rng: Random, number: int) -> tuple[str, Object, Object]:
    """The list that it belongs to, the object, and the owner reference and labels of its pods."""
    kind = rng.choice(list(KINDS))
    collection, version = KINDS[kind]
    name, namespace, labels = f"owner{number}", rng.choice(words.NAMESPACES), words.one_label(rng, words.POD_LABELS)
    selector: Object = labels if kind == "ReplicationController" else {"matchLabels": labels}
    if kind != "ReplicationController" and chance(rng, 0.2):
        selector = words.selector(rng, words.POD_LABELS)
    made = {
        "metadata": {"name": name, "namespace": namespace, "uid": f"owner-{number}"},
        "spec": {"selector": selector},
    }
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": f"owner-{number}", "controller": True}
    return collection, made, {"reference": reference, "namespace": namespace, "labels": labels}
