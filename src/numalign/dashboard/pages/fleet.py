"""*Fleet*: all nodes at a glance, one glyph each, filled by the resource that the reader chooses.

The page asks for changes while it is open. Unless its list is another one by now, it gets only the glyphs of nodes that
changed."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from numalign.dashboard import rendering, words
from numalign.dashboard.drawing import glyphs
from numalign.dashboard.moment import Moment, Node, ReportState

NAMED: Final = 600
"""Up to so many nodes, the names are written under the glyphs."""
FEW: Final = 60
"""Up to so many nodes, the amounts are written there, too."""
BLOCK: Final = 480
"""Nodes that a browser draws together, when it comes to see them."""
MOST_KEPT: Final = 8
"""Moments whose differences from the newest one are known."""
LONGEST: Final = 300
PREFERRED: Final = "cpu"
BOOT: Final = secrets.token_hex(4)
"""Versions of another process are no versions of this one."""


def _zoned(node: Node, resource: str) -> float:
    """The largest free part of any zone."""
    shares = [zone.shares[resource] for zone in node.zones if resource in zone.shares]
    return max((share.free / share.allocatable for share in shares if share.allocatable), default=-1.0)


def _stranded(node: Node, resource: str) -> int:
    return sum(zone.shares[resource].free for zone in node.zones if resource in zone.stranded)


def _free(node: Node, resource: str) -> int:
    return node.totals[resource].free if resource in node.totals else -1


Rank = Callable[[Node, str], float]
WORST: Final = tuple(ReportState)
ORDERS: Final[Mapping[str, tuple[str, Rank]]] = {
    "name": ("name", lambda node, resource: 0),
    "free": ("most free", lambda node, resource: -_free(node, resource)),
    "full": ("least free", _free),
    "zone": ("nearest to a free zone", lambda node, resource: -_zoned(node, resource)),
    "stranded": ("most stranded", lambda node, resource: -_stranded(node, resource)),
    "report": ("worst report", lambda node, resource: WORST.index(node.report.state)),
    "pods": ("most pods", lambda node, resource: -node.pods),
}
KINDS: Final[Mapping[str, tuple[str, Callable[[Node, str], bool]]]] = {
    "all": ("all nodes", lambda node, resource: True),
    "free": ("with a free zone", lambda node, resource: _zoned(node, resource) >= 1),
    "stranded": ("with stranded amounts", lambda node, resource: _stranded(node, resource) > 0),
    "report": ("with a doubtful report", lambda node, resource: node.report.state in glyphs.MARKS),
    "off": ("not ready or cordoned", lambda node, resource: node.status != "Ready"),
}


class Choice(Struct, frozen=True):
    """What the reader wants to see."""

    resource: str
    order: str
    kind: str
    search: str

    def nodes(self, shown: Moment) -> list[Node]:
        keeps, rank, sought = KINDS[self.kind][1], ORDERS[self.order][1], self.search.lower().split()
        found = [
            node
            for node in shown.nodes.values()
            if keeps(node, self.resource) and all(_matches(node, word) for word in sought)
        ]
        return found if self.order == "name" else sorted(found, key=lambda node: (rank(node, self.resource), node.name))


def _matches(node: Node, word: str) -> bool:
    """The word is a part of the name, of the policy or of a label as NAME=VALUE."""
    if word in node.name.lower() or word in node.policy:
        return True
    return any(word in f"{name}={value}".lower() for name, value in node.labels.items())


def _choice(request: Request, resources: Sequence[str]) -> Choice:
    asked = request.query_params
    resource, order, kind = asked.get("resource", ""), asked.get("sort", ""), asked.get("show", "")
    return Choice(
        resource=resource if resource in resources else (resources[0] if resources else PREFERRED),
        order=order if order in ORDERS else "name",
        kind=kind if kind in KINDS else "all",
        search=asked.get("q", "")[:LONGEST],
    )


class Summary(Struct, frozen=True):
    """The chosen resource in all nodes that are shown."""

    nodes: int
    allocatable: int
    free: int
    stranded: int
    doubtful: int


def _summary(found: Sequence[Node], resource: str) -> Summary:
    totals = [node.totals[resource] for node in found if resource in node.totals]
    return Summary(
        nodes=len(found),
        allocatable=sum(total.allocatable for total in totals),
        free=sum(total.free for total in totals),
        stranded=sum(_stranded(node, resource) for node in found),
        doubtful=sum(node.report.state in glyphs.MARKS for node in found),
    )


class Drawn:
    """The latest moments that were shown, to tell what changed since, and the glyphs of the latest one."""

    def __init__(self) -> None:
        self._moments: OrderedDict[str, Mapping[str, Node]] = OrderedDict()
        self._glyphs: dict[tuple[str, str], tuple[Node, tuple[str, bool], Markup]] = {}

    def note(self, shown: Moment) -> str:
        """The version of the moment's nodes."""
        version = f"{BOOT}-{shown.version}"
        self._moments[version] = shown.nodes
        self._moments.move_to_end(version)
        while len(self._moments) > MOST_KEPT:
            self._moments.popitem(last=False)
        gone = self._glyphs.keys() - ((name, resource) for name, resource in self._glyphs if name in shown.nodes)
        for key in gone:
            del self._glyphs[key]
        return version

    def changed(self, version: str, shown: Moment) -> set[str] | None:
        """Names of nodes that are others than in that version; None: it is not known any more."""
        before = self._moments.get(version)
        if before is None:
            return None
        return {name for name, node in shown.nodes.items() if before.get(name) is not node}

    def glyph(self, node: Node, resource: str, href: str, *, with_amount: bool) -> Markup:
        kept = self._glyphs.get((node.name, resource))
        if kept is not None and kept[0] is node and kept[1] == (href, with_amount):
            return kept[2]
        made = glyphs.glyph(node, resource, href, element(node.name), with_amount=with_amount)
        self._glyphs[node.name, resource] = (node, (href, with_amount), made)
        return made


def element(name: str) -> str:
    """The id of a node's element, which has none of the characters of its name."""
    return f"n{hashlib.blake2s(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


async def _page(request: Request) -> Response:
    shown = await rendering.moment(request)
    drawn = _drawn(request)
    resources = resources_of(shown)
    choice = _choice(request, resources)
    found, version = choice.nodes(shown), drawn.note(shown)
    is_few = len(found) <= FEW
    listed_as = "\0".join((choice.resource, *(node.name for node in found)))
    order = hashlib.blake2s(listed_as.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    state = f"{version}.{order}"
    asked = request.query_params.get("since", "")
    common: dict[str, Any] = {
        "choice": choice,
        "summary": _summary(found, choice.resource),
        "state": state,
    }
    if asked:
        if asked == state:
            return Response(status_code=204)
        before, _, known_order = asked.rpartition(".")
        names = drawn.changed(before, shown) if known_order == order else None
        if names is not None:
            some = [node for node in found if node.name in names]
            drawings = _glyphs(request, some, choice, with_amount=is_few)
            return rendering.part(request, "fleet_changes", shown, glyphs=drawings, **common)
    parts = (found[start : start + BLOCK] for start in range(0, len(found), BLOCK))
    blocks = list[Markup]()
    for part in parts:
        blocks.append(Markup("").join(_glyphs(request, part, choice, with_amount=is_few)))
        # Other tasks of the process, such as scheduling, do not wait for the whole page.
        await asyncio.sleep(0)
    listed = {**common, "blocks": blocks, "is_named": len(found) <= NAMED, "is_few": is_few}
    if "hx-request" in request.headers:
        return rendering.part(request, "fleet_list", shown, **listed)
    return rendering.page(request, "fleet", shown, resources=resources, orders=ORDERS, kinds=KINDS, **listed)


def resources_of(shown: Moment) -> list[str]:
    """What the nodes can be filled by; the first one is shown unless another is chosen."""
    return words.in_order({name for node in shown.nodes.values() for name in (*node.totals, *_zone_names(node))})


def _zone_names(node: Node) -> Iterator[str]:
    for zone in node.zones:
        yield from zone.shares


def _glyphs(request: Request, found: Sequence[Node], choice: Choice, *, with_amount: bool) -> Iterator[Markup]:
    link, drawn = rendering.links(request), _drawn(request)
    for node in found:
        yield drawn.glyph(node, choice.resource, link("node", node.name), with_amount=with_amount)


def _drawn(request: Request) -> Drawn:
    kept: Drawn | None = getattr(request.app.state, "fleet", None)
    if kept is None:
        kept = request.app.state.fleet = Drawn()
    return kept


ROUTES: Final = [Route("/fleet", _page)]
