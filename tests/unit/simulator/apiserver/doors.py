"""An `Api` for tests: a clock that stands until it is told, chance from a seed, and objects in few words."""

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Api, Change
from numalign.simulator.apiserver.verbs.state import Admission
from numalign.simulator.clock import Clock
from numalign.simulator.trees import Tree

BEGIN = datetime(2026, 11, 16, 5, tzinfo=UTC)


@dataclass
class Hand:
    """Of a clock: moved by the test."""

    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Door:
    """An Api, and the hand of its clock."""

    watch_cache_size: int = 1000
    admission: Admission | None = None
    hand: Hand = field(default_factory=Hand)

    def __post_init__(self) -> None:
        clock = Clock(self.hand, BEGIN, random.Random(1))
        self.api = Api(clock, random.Random(2), admission=self.admission, watch_cache_size=self.watch_cache_size)

    def changes(self, resource: Resource) -> list[Change]:
        """All from now on, as they come."""
        seen: list[Change] = []
        self.api.subscribe(resource, seen.append, since_now=True)
        return seen


def door(**how: Any) -> Api:
    return Door(**how).api


def named(name: str, namespace: str = "default", **metadata: Any) -> Tree:
    return {"metadata": {"name": name, "namespace": namespace, **metadata}}


def pod(name: str, node: str = "", **metadata: Any) -> Tree:
    spec: Tree = {"containers": [{"name": "main", "image": "web"}], "terminationGracePeriodSeconds": 30}
    return named(name, **metadata) | {"spec": spec | ({"nodeName": node} if node else {})}


def deployment(name: str, replicas: int = 2) -> Tree:
    return named(name) | {"spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}}


def workload(name: str) -> Tree:
    """A deployment that a real server takes too."""
    made = deployment(name)
    made["spec"]["template"] = {"metadata": {"labels": {"app": name}}, "spec": pod(name)["spec"]}
    return made
