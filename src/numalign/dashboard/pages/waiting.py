"""*Waiting pods*: what each of them lacks on which nodes, and what would happen if something were different.

The questions are in the address: `ask` for another amount (container place, resource and amount), `without` for a pod
that would be gone, `on`, `policy` and `scope` for another configuration of a kubelet. The engine answers them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from numalign.api import errors
from numalign.api.decode import quantity
from numalign.api.nrt.topologymanager import POLICIES, SCOPES
from numalign.api.objects import resourcenames
from numalign.dashboard import rendering, words
from numalign.dashboard.details import Ask, Change, NodeGroup, PodAnswer, WaitingMatrix, WaitingShape
from numalign.dashboard.drawing import heat
from numalign.dashboard.drawing.heat import Cell

T = TypeVar("T")
MOST_COLUMNS: Final = 24
MOST_GONE: Final = 64
MOST_NEAR: Final = 60
"""Nodes to choose from for a change of one of them."""
MOST_AMOUNT: Final = 1 << 50
LONGEST: Final = 64
"""Of an amount that a user types."""


class ShapeRow(Struct, frozen=True):
    """One row of the heat map."""

    shape: WaitingShape
    namespace: str
    name: str
    cells: tuple[Cell, ...]


class AskField(Struct, frozen=True, kw_only=True):
    """One amount that a user may change."""

    field: str
    ask: Ask
    value: str
    """As it is in the form."""
    is_changed: bool
    fewer: tuple[str, ...] = ()
    """Smaller amounts to choose at once."""


def rows(matrix: WaitingMatrix) -> list[ShapeRow]:
    found = []
    for shape, answers in zip(matrix.shapes, matrix.answers, strict=True):
        namespace, _, name = shape.pods[0].partition("/")
        found.append(ShapeRow(shape, namespace, name, tuple(map(heat.cell, answers[:MOST_COLUMNS]))))
    return found


def columns(matrix: WaitingMatrix) -> Sequence[NodeGroup]:
    return matrix.groups[:MOST_COLUMNS]


class BadChange(Exception):
    """A part of the address is no change; the text says which."""


def change_of(query: QueryParams, asks: Sequence[Ask]) -> Change:
    """`asks`: what the pod asks for. Amounts that are as they were are left out."""
    changed = []
    for place, ask in enumerate(asks):
        written = query.get(field(place), "").strip()
        if written and (amount := _amount(written, ask.resource)) != ask.amount:
            changed.append(Ask(ask.container, ask.resource, amount))
    policy, scope = _one_of(POLICIES, query, "policy"), _one_of(SCOPES, query, "scope")
    gone = tuple(dict.fromkeys(each for each in query.getlist("without") if each))
    if len(gone) > MOST_GONE:
        raise BadChange(f"at most {MOST_GONE} pods can be left out at once")
    return Change(asks=tuple(changed), gone=gone, node=query.get("on", ""), policy=policy, scope=scope)


def _one_of(known: Sequence[T], query: QueryParams, name: str) -> T | None:
    written = query.get(name, "")
    found = next((each for each in known if each == written), None)
    if written and found is None:
        raise BadChange(f"there is no {name} {errors.echo(written)}; there is {', '.join(map(str, known))}")
    return found


def field(place: int) -> str:
    return f"ask{place}"


def _amount(written: str, resource: str) -> int:
    """Thousandths of a CPU, bytes or devices."""
    try:
        found = quantity.parse(written) if len(written) <= LONGEST else None
    except quantity.QuantityError:
        found = None
    if found is None or not 0 <= found.value <= MOST_AMOUNT:
        raise BadChange(f"{errors.echo(written)} is no amount of {resource}; write 4, 1500m or 6Gi")
    return found.milli if resource == resourcenames.CPU else found.value


def fields(asks: Sequence[Ask], change: Change) -> list[AskField]:
    wanted = {(each.container, each.resource): each.amount for each in change.asks}
    found = []
    for place, ask in enumerate(asks):
        amount = wanted.get((ask.container, ask.resource), ask.amount)
        value = _written(amount, ask.resource)
        is_changed = amount != ask.amount
        found.append(
            AskField(field=field(place), ask=ask, value=value, is_changed=is_changed, fewer=tuple(_fewer(ask)))
        )
    return found


def _fewer(ask: Ask) -> Iterator[str]:
    """Two CPUs less, one device less, and half."""
    step = 2000 if ask.resource == resourcenames.CPU else 1
    less = [ask.amount // 2] if resourcenames.is_bytes(ask.resource) else [ask.amount - step, ask.amount // 2]
    for amount in dict.fromkeys(each for each in less if 0 < each < ask.amount):
        yield _written(amount, ask.resource)


def _written(amount: int, resource: str) -> str:
    """So that it reads back as the same amount."""
    text = words.amount(amount, resource)
    return text if _amount(text, resource) == amount else str(amount)


def query_of(change: Change, asks: Sequence[Ask]) -> dict[str, object]:
    """The address of a change, as `change_of` reads it."""
    wanted = {(each.container, each.resource): each.amount for each in change.asks}
    found: dict[str, object] = {}
    for place, ask in enumerate(asks):
        amount = wanted.get((ask.container, ask.resource))
        if amount is not None:
            found[field(place)] = _written(amount, ask.resource)
    given = {"without": list(change.gone), "on": change.node, "policy": change.policy, "scope": change.scope}
    return found | {name: value for name, value in given.items() if value}


async def _list(request: Request) -> Response:
    shown = await rendering.moment(request)
    matrix = await rendering.source(request).waiting(rendering.asked_time(request))
    return rendering.page(
        request,
        "waiting",
        shown,
        matrix=matrix,
        rows=rows(matrix),
        columns=columns(matrix),
        meanings=heat.MEANINGS,
        queued={pod.name: pod for pod in shown.waiting},
    )


async def _pod(request: Request) -> Response:
    shown = await rendering.moment(request)
    name = f"{request.path_params['namespace']}/{request.path_params['name']}"
    at, source = rendering.asked_time(request), rendering.source(request)
    found = await source.asked(name, Change(), at)
    if found is None:
        raise HTTPException(404, "There is no such pod")
    change, then, problem = Change(), None, ""
    try:
        change = change_of(request.query_params, found.asks)
        then = await source.asked(name, change, at) if not change.is_none else None
    except BadChange as wrong:
        problem = str(wrong)
    return rendering.page(
        request,
        "pod",
        shown,
        here="waiting",
        found=found,
        then=then,
        change=change,
        problem=problem or (then.problem if then is not None else ""),
        fields=fields(found.asks, change),
        queued=next((pod for pod in shown.waiting if pod.name == name), None),
        decisions=[each for each in shown.decisions if each.pod == name],
        namespace=request.path_params["namespace"],
        short_name=request.path_params["name"],
        policies=POLICIES,
        scopes=SCOPES,
        query_of=query_of,
        gained=_gained(found, then),
        near=[node for each in found.closest for node in (each.node, *each.like)][:MOST_NEAR],
    )


def _gained(found: PodAnswer, then: PodAnswer | None) -> list[str]:
    """Nodes on which the pod fits only under the change."""
    return [node for node in then.fitting if node not in found.fitting] if then is not None else []


ROUTES: Final = [Route("/waiting", _list), Route("/waiting/{namespace}/{name:path}", _pod)]
