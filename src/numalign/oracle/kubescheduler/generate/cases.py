"""Generates cases for kube-scheduler's plugins: a small cluster, a profile, and pods to place, each on its own.

One cluster serves many pods. Some questions remove pods from nodes or add pods, as preemption and nominated pods do."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from numalign.oracle.generate.draws import chance, some
from numalign.oracle.kubescheduler.generate import claims, nodes, pods, profiles, storage, workloads
from numalign.oracle.kubescheduler.generate.pods import Drawn, Mixture
from numalign.oracle.kubescheduler.generate.words import Object

Case = dict[str, Any]

FAMILY: Final = "scheduler"
QUESTIONS: Final = 12


def draw(seed: int, number: int) -> tuple[str, Case]:
    """The family and the case with this number."""
    return FAMILY, _Scene(Random(f"{FAMILY}/{seed}/{number}")).case(f"sched-{seed}-{number}")


class _Scene:
    """A cluster while it is generated, then the questions about it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.nodes = [nodes.node(rng, number) for number in range(rng.randint(1, 12))]
        self.names: list[str] = [each["metadata"]["name"] for each in self.nodes]
        self.snapshot: Case = {"nodes": self.nodes, "namespaces": workloads.namespaces(rng)}
        if chance(rng, 0.04):
            self.snapshot["deviceClasses"] = [
                {"metadata": {"name": "gpus"}, "spec": {"extendedResourceName": nodes.GPU}}
            ]
        self.snapshot["services"] = [workloads.service(rng, number) for number in range(rng.choice((0, 1, 3)))]
        self.mixture = Mixture(rng)
        self._store()
        self.drawn = Drawn(self.names, self.snapshot["persistentVolumeClaims"], self._owners())
        count = rng.choice((0, 5, 15, 25, 40))
        self.assigned = [pods.assigned(rng, f"p{number}", self.mixture, self.drawn) for number in range(count)]
        self.snapshot["pods"] = self.assigned

    def case(self, name: str) -> Case:
        made: Case = {"id": name}
        profile = profiles.profile(self.rng, self.names) if chance(self.rng, 0.4) else None
        if profile is not None:
            made["profile"] = profile
        questions = [self._question(number) for number in range(QUESTIONS)]
        self._make_claims([each["pod"] for each in questions] + self.assigned)
        used = {key: value for key, value in self.snapshot.items() if value}
        return {**made, "snapshot": used, "questions": questions}

    def _store(self) -> None:
        """Add storage, if pods have volumes."""
        rng = self.rng
        self.snapshot |= {"persistentVolumes": [], "persistentVolumeClaims": []}
        if not self.mixture.shares["volumes"]:
            return
        volumes = [storage.volume(rng, number, self.names) for number in range(rng.randint(2, 10))]
        self.snapshot["persistentVolumes"] = volumes
        self.snapshot["persistentVolumeClaims"] = [
            claims.claim(rng, f"claim{number}", self.mixture.namespace(rng), volumes, self.names)
            for number in range(rng.randint(2, 10))
        ]
        self.snapshot["storageClasses"] = storage.classes(rng)
        self.snapshot["csiNodes"] = [storage.csi_node(rng, name) for name in some(rng, self.names, 0.8)]
        self.snapshot["csiDrivers"] = [storage.csi_driver(rng, name) for name in some(rng, storage.DRIVERS, 0.7)]
        self.snapshot["csiStorageCapacities"] = storage.capacities(rng)
        self.snapshot["volumeAttachments"] = [
            storage.attachment(rng, number, volumes, self.names) for number in range(rng.choice((0, 1, 4)))
        ]

    def _owners(self) -> list[Object]:
        owners = []
        for number in range(self.rng.choice((0, 1, 3))):
            collection, made, owner = workloads.controller(self.rng, number)
            self.snapshot.setdefault(collection, []).append(made)
            owners.append(owner)
        return owners

    def _question(self, number: int) -> Object:
        made: Object = {"pod": pods.pod(self.rng, f"q{number}", self.mixture, self.drawn)}
        if chance(self.rng, 0.4):
            names = some(self.rng, self.names, 0.3) or [self.rng.choice(self.names)]
            made["what_if"] = [self._what_if(name, f"{number}-{name}") for name in names]
        return made

    def _what_if(self, node: str, name: str) -> Object:
        there = [each["metadata"]["uid"] for each in self.assigned if _is_on(each, node)]
        made: Object = {"node": node}
        if removed := some(self.rng, there, 0.5):
            made["removed"] = removed
        if chance(self.rng, 0.3):
            made["added"] = [pods.pod(self.rng, f"nominated-{name}", self.mixture, self.drawn)]
        return made

    def _make_claims(self, with_volumes: list[Object]) -> None:
        """Add the claims of ephemeral volumes, after all pods are known."""
        known = self.snapshot["persistentVolumeClaims"]
        for each in with_volumes:
            known += claims.of_ephemeral(self.rng, each, self.snapshot["persistentVolumes"], self.names)


def _is_on(pod: Object, node: str) -> bool:
    return pod["spec"].get("nodeName") == node and pod["status"]["phase"] in ("Running", "Pending")
