"""Answers for the pages of a node, of waiting pods and of a decision, from a scene.

Every source of the dashboard has the same answers: a source says how the cluster was at a time, and `SceneDetails` asks
the engine of that copy. One question is answered at a time, in a thread, because questions try changes on the copy."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from msgspec import structs

from numalign.cli.results.moments import decision, moment, nodesheet, stories, waiting
from numalign.cli.results.moments.scene import Scene
from numalign.cli.results.moments.waiting import Asked
from numalign.dashboard.details import (
    Change,
    DecisionDetail,
    DecisionStory,
    NodeDetail,
    PodAnswer,
    Repetition,
    WaitingMatrix,
)

T = TypeVar("T")


class SceneDetails(ABC):
    repeats = decision.DUMP
    """What decisions can be repeated from, in words."""

    def __init__(self) -> None:
        self._asking = asyncio.Lock()
        """Whatever reads or asks a scene's copy holds it."""

    @abstractmethod
    async def scene(self, at: float | None = None) -> Scene:
        """With a copy of the cluster, of which questions may be asked. SourceFailed if it cannot be had."""

    async def node(self, name: str, at: float | None = None) -> NodeDetail | None:
        return await self._found(lambda scene: nodesheet.detail(scene, name), at)

    async def waiting(self, at: float | None = None) -> WaitingMatrix:
        return await self._found(lambda scene: waiting.matrix(Asked(scene)), at)

    async def asked(self, pod: str, change: Change, at: float | None = None) -> PodAnswer | None:
        return await self._found(lambda scene: waiting.asked(Asked(scene), pod, change), at)

    async def decision(self, key: str, at: float | None = None) -> DecisionDetail | None:
        found = await self._found(lambda scene: decision.detail(scene, key, self.repeats), at)
        if found is None:
            return None
        return structs.replace(found, story=await self._story(found.decision.pod, moment.uid_of(key), at))

    async def repeated(self, key: str, at: float | None = None) -> Repetition | None:
        return await self._found(lambda scene: decision.repeated(scene, key), at)

    async def _story(self, pod: str, uid: str, at: float | None) -> DecisionStory:
        """What happened to the pod; a source that knows more than the objects overrides it."""
        return await self._found(lambda scene: stories.of_objects(scene, pod, uid), at)

    async def _found(self, ask: Callable[[Scene], T], at: float | None) -> T:
        async with self._asking:
            return await asyncio.to_thread(ask, await self.scene(at))
