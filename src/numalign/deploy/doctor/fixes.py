"""Carries out repairs, one after the other, and says what became of each.

`numalign doctor --fix` calls `mend` after it has shown the repairs and was allowed to. Nothing else of the doctor
writes. A repair is refused, and reported so, where the object is not any more the one that was judged."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.deploy.doctor.diagnosis import Diagnosis
from numalign.deploy.doctor.repairs import Grant, ObjectDeletion, Patch, Repair
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.resources import DeleteOptions, Preconditions

MANAGER = "numalign-doctor"


class FixOutcome(Struct, frozen=True, kw_only=True):
    what: str
    done: bool
    says: str


def planned(diagnosis: Diagnosis) -> list[tuple[str, Repair]]:
    """Every repair once, with the id of the check that asks for it."""
    return [(finding.check, repair) for finding in diagnosis.findings for repair in finding.repairs]


async def mend(client: Client, repairs: Iterable[Repair]) -> list[FixOutcome]:
    return [await _mended(client, each) for each in repairs]


async def _mended(client: Client, repair: Repair) -> FixOutcome:
    what = repair.target.words
    try:
        return FixOutcome(what=what, done=True, says=await _done(client, repair))
    except errors.Conflict:
        return FixOutcome(what=what, done=False, says="not done: it was changed meanwhile; run the doctor again")
    except _Returned as problem:
        return FixOutcome(what=what, done=False, says=str(problem))
    except errors.NotFound:
        return FixOutcome(what=what, done=True, says="already gone")
    except (errors.KubeError, BadObject) as problem:
        return FixOutcome(what=what, done=False, says=f"not done: {problem}")


class _Returned(Exception):
    """What was gone exists again."""


async def _done(client: Client, repair: Repair) -> str:
    match repair:
        case ObjectDeletion():
            if repair.unless is not None:
                await _require_gone(client, repair)
            held = Preconditions(uid=repair.uid or None, resource_version=repair.version or None)
            await client.delete(repair.target, DeleteOptions(preconditions=held))
            return "deleted"
        case Patch():
            await client.patch(repair.target, "merge", repair.patch)
            return "changed"
        case Grant():
            await client.apply(repair.target, repair.wanted, manager=MANAGER, force=True)
            await client.apply(repair.binding, repair.bound, manager=MANAGER, force=True)
            return "applied"


async def _require_gone(client: Client, repair: ObjectDeletion) -> None:
    assert repair.unless is not None
    try:
        await client.get(repair.unless)
    except errors.NotFound:
        return
    raise _Returned(f"not done: {repair.unless.words} exists again")
