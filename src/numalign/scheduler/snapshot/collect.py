"""A snapshot of a cluster by its API server, for commands that explain what a scheduler would do there.

What the server does not have, or does not let us see, is left out and said; everything else is listed one kind after
the other, so that pods may be a moment younger than nodes."""

from __future__ import annotations

from typing import Any

from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.resources import NODES, PODS, Resource
from numalign.scheduler import main
from numalign.scheduler.intake import watching
from numalign.scheduler.snapshot import snapshot
from numalign.scheduler.snapshot.snapshot import Snapshot

NEEDED = (NODES, PODS)
"""Without these there is nothing to say: what is wrong with them is raised."""
UNMISSED = (watching.DEVICE_CLASSES,)
"""A cluster that does not know these has no pods that they would matter to."""


async def taken(client: Client, config: Configuration | None = None) -> Snapshot:
    """KubeError where the server cannot be reached, or does not let us see nodes and pods."""
    objects: dict[str, tuple[Any, ...]] = {}
    missing, left_out = list[str](), list[str]()
    for resource in snapshot.RESOURCES:
        try:
            found = await client.every(resource.everywhere())
        except (errors.NotFound, errors.Forbidden) as problem:
            if resource in NEEDED:
                raise
            if resource not in UNMISSED or isinstance(problem, errors.Forbidden):
                missing.append(_why(resource, problem))
            continue
        left_out += [str(each.problem) for each in found if isinstance(each, Unreadable)]
        objects[resource.plural] = tuple(snapshot.discreet(each) for each in found if not isinstance(each, Unreadable))
    clock = client.sender.clock
    return Snapshot(
        objects=objects,
        config=config or main.defaults(),
        wall=clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ"),
        now=clock.now(),
        missing=tuple(missing),
        left_out=tuple(left_out),
    )


def _why(resource: Resource[Any], problem: errors.Refusal) -> str:
    is_unknown = isinstance(problem, errors.NotFound)
    return f"{resource.plural}: " + ("the cluster has no such resource" if is_unknown else "not allowed to list them")
