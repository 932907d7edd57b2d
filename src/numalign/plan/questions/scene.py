"""A snapshot opened for questions: a restored cluster in which pods arrive, and the kinds of pods that are asked about.

All questions call `opened`. Pods arrive one after the other, each admitted by its kubelet before the next one is bound:
what the planner asks about is not how a burst of pods is ordered."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct, structs

from numalign.api.decode.structs import Wire
from numalign.api.objects import requests
from numalign.api.objects.pod import Pod, PodStatus
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.api.schedulerconfig.plugins import NUMALIGN, ZONES
from numalign.placement.facts import BindFailed
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs, ScoringStrategy
from numalign.scheduler import placementannotation
from numalign.scheduler.capacity.service import AskedShape, CapacityService
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.choose import Chosen
from numalign.scheduler.explain import explanations
from numalign.scheduler.explain.arrivals import Arrivals
from numalign.scheduler.settings import NumalignArgs
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.snapshot import Snapshot

T = TypeVar("T")
ATTEMPTS: Final = 3
"""How often a scheduler that sees totals only tries a pod that kubelets reject."""
DAEMON_SET, STATIC = "DaemonSet", "Node"


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of pod of a workload."""

    name: str
    pod: Pod
    pods: int = 1
    weight: int = 1
    """Its part of a mix."""


class Opened(Struct, frozen=True):
    """A restored cluster that pods can arrive in."""

    made: restore.Restored
    arrivals: Arrivals
    service: CapacityService


def opened(taken: Snapshot, seed: int = 0, strategy: str = "") -> Opened:
    """`seed`: of the choice among equally good nodes."""
    config = configured(taken.config, strategy)
    made = restore.restored(structs.replace(taken, config=config))
    return Opened(made, Arrivals(made, random.Random(seed)), CapacityService(made.cluster, made.profiles, config))


def configured(config: Configuration, strategy: str = "") -> Configuration:
    """Pods arrive in the order in which they are bound, and if wanted zones are scored by another strategy."""
    profiles = []
    for profile in config.profiles:
        args: dict[str, Wire] = dict(profile.args)
        own, zones = args.get(NUMALIGN), args.get(ZONES)
        if isinstance(own, NumalignArgs):
            args[NUMALIGN] = structs.replace(own, trust_bind_order=True)
        if strategy and isinstance(zones, NodeResourceTopologyMatchArgs):
            scored = structs.replace(zones.scoring_strategy or ScoringStrategy(), type=strategy)
            args[ZONES] = structs.replace(zones, scoring_strategy=scored)
        profiles.append(structs.replace(profile, args=args))
    return structs.replace(config, profiles=tuple(profiles))


def copies(kinds: Sequence[Kind]) -> Iterator[tuple[Kind, Pod]]:
    """The pods of a workload, kind by kind."""
    for kind in kinds:
        for number in range(kind.pods):
            yield kind, copy(kind, number)


def copy(kind: Kind, number: int) -> Pod:
    """A pod of the kind that does not exist."""
    name = f"{kind.name}-{number}"
    metadata = structs.replace(kind.pod.metadata, name=name, uid=f"planned-{name}")
    made = structs.replace(kind.pod, metadata=metadata, status=PodStatus())
    return requests.defaulted(made)


def again(pod: Pod) -> Pod:
    """The pod as its controller would create it once more."""
    spec = structs.replace(pod.spec, node_name="")
    metadata = structs.replace(
        pod.metadata, uid=f"{pod.metadata.uid}-again", annotations=_without_placement(pod.metadata.annotations)
    )
    return structs.replace(pod, metadata=metadata, spec=spec, status=PodStatus())


def _without_placement(notes: Mapping[str, str]) -> dict[str, str]:
    """Annotations that say where the pod was placed are of the pod that was."""
    return {name: text for name, text in notes.items() if name != placementannotation.NAME}


def shuffled(pods: Iterable[T], seed: int) -> list[T]:
    """In the order of arrival that the seed gives."""
    listed = list(pods)
    random.Random(seed).shuffle(listed)
    return listed


def is_of_node(pod: Pod) -> bool:
    """Whether the pod belongs to its node and ends with it: of a DaemonSet, or of a file on the node."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind in (DAEMON_SET, STATIC)


def asked(kind: Kind) -> AskedShape:
    return AskedShape(kind.name, copy(kind, 0), kind.pods)


def why_not(scene: Opened, pod: Pod) -> str:
    """In one sentence why no node takes the pod now."""
    profile = scene.arrivals.profile(pod)
    found = explanations.explained(pod, profile, scene.arrivals.around, scene.made.now)
    return found.headline if not found.causes else found.causes[0].answer.sentence


class Blind:
    """What becomes of pods if their scheduler sees node totals only: kubelets reject some of them."""

    def __init__(self, taken: Snapshot, seed: int) -> None:
        self._scene = opened(taken, seed)
        self.rejected = 0

    def place(self, pod: Pod) -> bool:
        """Whether a kubelet admits the pod in the end. A rejected pod is created again, three times in all."""
        scene = self._scene
        profile, engine = scene.arrivals.profile(pod), scene.made.engine
        blind = structs.replace(profile, zones=False)
        shape = filtering.shape(profile, engine, pod)
        for _ in range(ATTEMPTS):
            codes = engine.survey(shape).copy()
            found = scene.arrivals.chosen(pod, shape, blind)
            if not isinstance(found, Chosen):
                return False
            engine.apply(BindFailed(pod.metadata.uid))
            row = engine.rows[found.decision.node]
            placed = filtering.place(profile, engine, pod, shape, row, scene.made.now) if codes[row] >= 0 else None
            if placed is not None:
                scene.made.cluster.assume(pod, placed)
                return True
            self.rejected += 1
        return False
