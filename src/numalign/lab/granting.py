"""Grants numalign's programs their rights in a lab's API server.

`assembling` calls `grant` once the server is up, before any program starts. Every agent may change only its own Node
and report; agents have as a group what RBAC cannot limit that way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import resources
from numalign.kube.client import Client
from numalign.lab import accounts, rights
from numalign.lab.rights import Holder, Right


class AnyObject(Wire, frozen=True):
    """An object of any kind, of which only existence matters."""

    metadata: ObjectMeta = ObjectMeta()


async def grant(client: Client, nodes: Iterable[str]) -> None:
    await asyncio.gather(*(_create(client, each) for each in wanted(nodes)))


def wanted(nodes: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Roles and bindings, without rights of options that labs do not use."""
    agent = _needed(rights.AGENT)
    yield from rights.roles(Holder("User", accounts.SCHEDULER), _needed(rights.SCHEDULER))
    yield from rights.roles(Holder("User", accounts.COLLECTOR), _needed(rights.COLLECTOR))
    yield from rights.roles(Holder("Group", accounts.AGENTS), (right for right in agent if not right.own))
    for node in nodes:
        yield from rights.roles(Holder("User", accounts.agent(node)), (right for right in agent if right.own), node)


def _needed(every: Iterable[Right]) -> list[Right]:
    return [right for right in every if not right.option]


async def _create(client: Client, thing: dict[str, Any]) -> None:
    resource = resources.of(rights.API_VERSION, f"{thing['kind'].lower()}s", thing["kind"], AnyObject)
    await client.create(resource.within(thing["metadata"].get("namespace", "")), thing)
