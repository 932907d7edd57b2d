"""Generates nodes: labels, taints, amounts, images, declared features."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import words
from numalign.oracle.kubescheduler.generate.words import Object

TAINTS: Final = (("dedicated", ("gpu", "infra")), ("flaky", ("",)), ("node.kubernetes.io/unschedulable", ("",)))
EFFECTS: Final = {"NoSchedule": 4.0, "PreferNoSchedule": 4.0, "NoExecute": 2.0}
IMAGES: Final = ("registry.example/web:v1", "registry.example/web", "db:latest", "db", "example.com:5000/cache")
DIGEST: Final = "registry.example/web@sha256:" + "a" * 64
FEATURES: Final = (
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
    "VolumeBindMountOptions",
    "GuaranteedQoSPodCPUResize",
)
MEMORY: Final = (*("4Gi", "16Gi", "33554431Ki", "15872Mi") * 8, "1Ei")
"""The last one is so large that a hundred times as much does not fit into 64 bits."""
GPU: Final = "vendor.com/gpu"
NIC: Final = "vendor.com/nic"
SCALARS: Final = (GPU, NIC, "hugepages-2Mi", "batch.kubernetes.io/slots", "attachable-volumes-csi-fast.example")


def node(rng: Random, number: int) -> Object:
    name = f"n{number}"
    metadata = {"name": name, "labels": _labels(rng, name), "uid": f"node-{number}"}
    status: Object = {"allocatable": _allocatable(rng)}
    if images := [_image(rng, each) for each in some(rng, (*IMAGES, DIGEST), 0.3)]:
        status["images"] = images
    if features := some(rng, FEATURES, 0.3):
        status["declaredFeatures"] = features
    return {"metadata": metadata, "spec": _spec(rng), "status": status}


def _labels(rng: Random, name: str) -> dict[str, str]:
    made = {"cores": rng.choice(("4", "8", "16", "many", "007")), "disk": rng.choice(("ssd", "hdd"))}
    made = {key: value for key, value in made.items() if chance(rng, 0.7)}
    if chance(rng, 0.95):
        made[words.HOSTNAME] = name if chance(rng, 0.97) else "n0"
    if chance(rng, 0.92):
        made[words.ZONE] = rng.choice(words.ZONES)
    if chance(rng, 0.6):
        made[words.REGION] = rng.choice(words.REGIONS)
    if chance(rng, 0.05):
        made[words.OLD_ZONE] = rng.choice(words.ZONES)
        made[words.OLD_REGION] = rng.choice(words.REGIONS)
    if chance(rng, 0.5):
        made["rack"] = rng.choice(("1", "2", "3", "4"))
    return made


def _spec(rng: Random) -> Object:
    made: Object = {}
    if chance(rng, 0.08):
        made["unschedulable"] = True
    if taints := [_taint(rng, key, values) for key, values in TAINTS if chance(rng, 0.13)]:
        made["taints"] = taints
    return made


def _taint(rng: Random, key: str, values: tuple[str, ...]) -> Object:
    value = rng.choice(values)
    return {"key": key, **({"value": value} if value else {}), "effect": weighted(rng, EFFECTS)}


def _allocatable(rng: Random) -> dict[str, str]:
    made = {"cpu": rng.choice(("2", "4", "7910m", "16")), "memory": rng.choice(MEMORY)}
    if chance(rng, 0.97):
        made["pods"] = weighted(rng, {"110": 9.0, "8": 1.0, "3": 0.5, "1": 0.2, "0": 0.2})
    if chance(rng, 0.7):
        made["ephemeral-storage"] = rng.choice(("100Gi", "1Gi", "0", "93211435Ki"))
    for scalar in some(rng, SCALARS, 0.35):
        made[scalar] = "256Mi" if scalar.startswith("hugepages") else str(rng.choice((0, 1, 2, 4, 8)))
    # Rarely a node lacks an amount, or has zero of it.
    if chance(rng, 0.03):
        made[rng.choice(("cpu", "memory"))] = "0"
    return made


def _image(rng: Random, name: str) -> Object:
    names = [name, DIGEST] if chance(rng, 0.1) else [name]
    return {"names": names, "sizeBytes": rng.choice((0, 5 << 20, 60 << 20, 300 << 20, 900 << 20, 1234567891))}
