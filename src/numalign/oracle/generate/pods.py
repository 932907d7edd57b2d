"""Generates pods: init containers, sidecars and apps, whole and fractional CPUs, devices, pod-level resources."""

from __future__ import annotations

from random import Random

from numalign.oracle.generate.draws import chance, some, weighted

MIB = 1 << 20


class Wishes:
    """What the containers of one case may request, in the machine's order of magnitude."""

    def __init__(
        self, *, cpus: int, memory: int, hugepages: tuple[str, ...] = (), devices: tuple[str, ...] = ()
    ) -> None:
        self.cpus = max(1, cpus)
        self.memory = max(64 * MIB, memory)
        self.hugepages = hugepages
        self.devices = devices


def pod(rng: Random, uid: str, wishes: Wishes, *, pod_level: float = 0.0) -> dict[str, object]:
    guaranteed = chance(rng, 0.88)
    apps = weighted(rng, {1: 6, 2: 3, 3: 1})
    inits = weighted(rng, {0: 7, 1: 2, 2: 1, 3: 0.5})
    made: dict[str, object] = {"uid": uid}
    init = [container(rng, f"i{n}", wishes, guaranteed, sidecar=chance(rng, 0.4)) for n in range(inits)]
    if init:
        made["init"] = init
    made["containers"] = [container(rng, f"c{n}", wishes, guaranteed) for n in range(apps)]
    if chance(rng, pod_level):
        made["pod_resources"] = _pod_resources(rng, wishes, guaranteed)
    return made


def container(rng: Random, name: str, wishes: Wishes, guaranteed: bool, *, sidecar: bool = False) -> dict[str, object]:
    made: dict[str, object] = {"name": name}
    if sidecar:
        made["restartable"] = True
    limits = {"cpu": _cpus(rng, wishes), "memory": str(_bytes(rng, wishes.memory))}
    for size in some(rng, wishes.hugepages, 0.3):
        limits[size] = str(2 * MIB * rng.randint(1, 64) if size.endswith("2Mi") else (1 << 30) * rng.randint(1, 3))
    for resource in some(rng, wishes.devices, 0.5):
        limits[resource] = str(weighted(rng, {1: 5, 2: 3, 3: 1, 4: 1, 0: 0.2}))
    requests = dict(limits)
    if not guaranteed:
        for resource in ("cpu", "memory"):
            if chance(rng, 0.5):
                limits.pop(resource)
    if requests:
        made["requests"] = requests
    if limits:
        made["limits"] = limits
    return made


def _cpus(rng: Random, wishes: Wishes) -> str:
    if chance(rng, 0.06):
        return f"{rng.randint(1, wishes.cpus * 1000)}m"
    most = wishes.cpus if chance(rng, 0.3) else max(1, wishes.cpus // 3)
    whole = rng.randint(1, most)
    return f"{whole}000m" if chance(rng, 0.03) else str(whole)


def _bytes(rng: Random, memory: int) -> int:
    most = memory if chance(rng, 0.3) else memory // 4
    return rng.randint(1, max(2, most // (4 * MIB))) * 4 * MIB


def _pod_resources(rng: Random, wishes: Wishes, guaranteed: bool) -> dict[str, object]:
    amounts = {"cpu": _cpus(rng, wishes), "memory": str(_bytes(rng, wishes.memory))}
    if wishes.hugepages and chance(rng, 0.2):
        amounts[wishes.hugepages[0]] = str(4 * MIB * rng.randint(1, 32))
    if chance(rng, 0.1):
        amounts.pop(rng.choice(list(amounts)))
    return {"requests": dict(amounts), "limits": dict(amounts) if guaranteed or chance(rng, 0.3) else {}}
