"""Reads an observed cluster from files: the output of `kubectl get ... -A -o json|yaml`, in any number of files.

`numalign doctor -f` calls `read`. A kind that no file has counts as unread, so its checks are skipped. Files do not say
when they were written: the newest time of a lease, a heartbeat or a pod in them counts as now. kubectl leaves managed
fields out unless it is asked for them with --show-managed-fields."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from msgspec import structs

from numalign.api import errors
from numalign.api.nrt import publishers
from numalign.deploy.doctor import collect, programs
from numalign.deploy.doctor import observed as kinds
from numalign.deploy.doctor.observed import Observed
from numalign.kube import dumps, lists
from numalign.kube.lists import Unreadable
from numalign.kube.resources import Named, Resource

SINGLE: Final[tuple[Resource[Any], ...]] = (kinds.DEFINITIONS, kinds.LEASES, kinds.CONFIG_MAPS)
READ: Final[tuple[Resource[Any], ...]] = (*kinds.LISTED, kinds.REPORTS[0], *SINGLE)
BY_KIND: Final = {(each.group, each.kind): each for each in READ}


def read(texts: Iterable[tuple[bytes, str]]) -> Observed:
    """Texts with their names. BadObject if one is no file of objects, or none has an object that is looked at."""
    found: dict[str, list[Any]] = {}
    odd: list[str] = []
    names: list[str] = []
    for text, name in texts:
        names.append(name)
        for typed, raw in dumps.objects(text, name, odd):
            resource = BY_KIND.get((typed.api_version.rpartition("/")[0], typed.kind))
            if resource is not None:
                thing = _one(resource, raw, odd)
                found.setdefault(resource.plural, []).extend([] if thing is None else [thing])
    if not found:
        raise errors.BadObject("File", ", ".join(names), "", "holds no nodes, pods or anything else that is looked at")
    return _observed(found, odd)


def _one(resource: Resource[Any], raw: bytes, odd: list[str]) -> Named | None:
    thing = lists.one(resource, raw)
    if isinstance(thing, Unreadable):
        odd.append(str(thing.problem))
        return None
    found: Named = thing
    return found


def _observed(found: dict[str, list[Any]], odd: list[str]) -> Observed:
    plurals = {each.plural for each in READ}
    unread = dict.fromkeys(sorted(plurals - found.keys()), kinds.ABSENT)
    unread |= {kinds.VERSION: kinds.ABSENT, kinds.CONFIGZ: kinds.ABSENT}
    leases: list[kinds.RenewedLease] = found.get(kinds.LEASES.plural, [])
    of_nodes = tuple(each for each in leases if each.metadata.namespace == kinds.NODE_LEASES)
    if not of_nodes:
        unread[kinds.LEASES.within(kinds.NODE_LEASES).words] = kinds.ABSENT
    definitions = [each for each in found.get(kinds.DEFINITIONS.plural, ()) if each.metadata.name == kinds.DEFINITION]
    listed: dict[str, Any] = {field: tuple(found.get(plural, ())) for plural, field in collect.FIELDS.items()}
    seen = Observed(
        reports=tuple(found.get(kinds.REPORTS[0].plural, ())),
        definition=definitions[0] if definitions else None,
        node_leases=of_nodes,
        config_maps=tuple(found.get(kinds.CONFIG_MAPS.plural, ())),
        unread=unread,
        odd=tuple(odd),
        **listed,
    )
    served = {programs.serving(each, seen).lease for each in programs.schedulers_of(seen)} | {collect.OUR_LEASE}
    ours = tuple(each for each in leases if (each.metadata.namespace, each.metadata.name) in served)
    return structs.replace(seen, leases=ours, now=_newest(seen))


def _newest(seen: Observed) -> datetime | None:
    stamps = [
        *(each.spec.renew_time for each in seen.node_leases),
        *(each.metadata.annotations.get(publishers.HEARTBEAT) for each in seen.reports),
        *(publishers.latest(each.metadata).time for each in seen.reports),
        *(each.metadata.creation_timestamp for each in seen.pods),
    ]
    return max((moment for each in stamps if (moment := publishers.moment(each)) is not None), default=None)
