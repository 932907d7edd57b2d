"""Generates requests of pods: containers, init containers and sidecars, pod-level resources, resizes in progress."""

from __future__ import annotations

from random import Random
from typing import Final

from numalign.oracle.generate.draws import chance, some, weighted
from numalign.oracle.kubescheduler.generate import nodes
from numalign.oracle.kubescheduler.generate.words import Object

AMOUNTS: Final = {
    "cpu": ("100m", "250m", "1", "1500m", "2", "0", "333m", "500m"),
    "memory": ("64Mi", "200Mi", "1Gi", "3Gi", "0", "100M", "1536Mi"),
    "ephemeral-storage": ("1Gi", "10Gi", "0"),
}
UNKNOWN: Final = "gpu"
"""Neither native nor extended: the scheduler does not count it."""


def containers(rng: Random) -> Object:
    """Container lists for the spec. A third of all pods have containers without some amounts."""
    count = weighted(rng, {1: 6.0, 2: 3.0, 3: 1.0})
    made: Object = {"containers": [container(rng, f"c{number}") for number in range(count)]}
    if chance(rng, 0.2):
        made["initContainers"] = [_init(rng, f"i{number}") for number in range(rng.choice((1, 1, 2, 3)))]
    if chance(rng, 0.05):
        made["overhead"] = {"cpu": "250m", "memory": "64Mi"}
    if chance(rng, 0.06):
        made["resources"] = {"requests": _native(rng, ("cpu", "memory"))}
    return made


def container(rng: Random, name: str) -> Object:
    made: Object = {"name": name, "image": rng.choice((*nodes.IMAGES, nodes.DIGEST, "other"))}
    if asked := _requests(rng):
        made["resources"] = {"requests": asked}
    return made


def _init(rng: Random, name: str) -> Object:
    made = container(rng, name)
    return {**made, "restartPolicy": "Always"} if chance(rng, 0.5) else made


def _requests(rng: Random) -> dict[str, str]:
    if chance(rng, 0.15):
        return {}
    made = _native(rng, some(rng, ("cpu", "memory"), 0.8))
    if chance(rng, 0.15):
        made |= _native(rng, ("ephemeral-storage",))
    for scalar in some(rng, nodes.SCALARS, 0.05):
        made[scalar] = rng.choice(("2Mi", "64Mi")) if scalar.startswith("hugepages") else str(rng.choice((1, 1, 2, 0)))
    if chance(rng, 0.01):
        made[UNKNOWN] = "1"
    return made


def _native(rng: Random, names: list[str] | tuple[str, ...]) -> dict[str, str]:
    return {name: rng.choice(AMOUNTS[name]) for name in names}


def resized(rng: Random, spec: Object) -> Object:
    """The status of a pod during an in-place resize: allocated resources and current ones."""
    made: Object = {"containerStatuses": [_resized(rng, each) for each in spec["containers"]]}
    if "initContainers" in spec:
        made["initContainerStatuses"] = [_resized(rng, each) for each in spec["initContainers"]]
    if "resources" in spec and chance(rng, 0.5):
        made["resources"] = {"requests": _native(rng, ("cpu", "memory"))}
        if chance(rng, 0.6):
            made["allocatedResources"] = _native(rng, ("cpu", "memory"))
    if chance(rng, 0.3):
        reason = rng.choice(("Infeasible", "Deferred"))
        made["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return made


def _resized(rng: Random, container: Object) -> Object:
    """Empty amounts are omitted, the object around them is not."""
    made: Object = {"name": container["name"]}
    if allocated := _native(rng, some(rng, ("cpu", "memory"), 0.7)):
        made["allocatedResources"] = allocated
    if chance(rng, 0.7):
        in_force = _native(rng, some(rng, ("cpu", "memory"), 0.8))
        made["resources"] = {"requests": in_force} if in_force else {}
    return made
