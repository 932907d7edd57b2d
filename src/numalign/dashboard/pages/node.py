"""*A node*: its sockets, zones, CPUs, memory and devices, who holds what, and how the node reports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from numalign.dashboard import rendering, words
from numalign.dashboard.details import Core, CpuUse, NodeDetail, Part, Zones
from numalign.dashboard.drawing import bars, boxes, distances, machine
from numalign.dashboard.drawing.boxes import Marks


class ResourceView(Struct, frozen=True):
    """One resource of a zone, drawn."""

    part: Part
    drawing: Markup


class ZoneView(Struct, frozen=True, kw_only=True):
    """A zone, or devices of several zones or of none."""

    zones: Zones
    group: Zones
    """The memory group that it belongs to; empty: none with other zones."""
    cpus: Markup | None
    """None: the report does not name its CPUs."""
    resources: tuple[ResourceView, ...]


class SocketView(Struct, frozen=True):
    socket: int | None
    """None: not known."""
    zones: tuple[ZoneView, ...]


def sockets(node: NodeDetail, marks: Marks) -> list[SocketView]:
    """Zones by the sockets they belong to; a zone on several sockets is drawn once, at the first."""
    drawer, blank = ZoneDrawer(node, marks), silent(node)
    left = {zone: drawer.zone((zone,)) for zone in node.zones if zone not in blank}
    found = []
    for socket, zones in sorted(node.sockets.items()):
        inside = tuple(left.pop(zone) for zone in zones if zone in left)
        if inside:
            found.append(SocketView(socket, inside))
    if left:
        found.append(SocketView(None, tuple(left.values())))
    return found


def silent(node: NodeDetail) -> Zones:
    """Zones of which the report says nothing, as a machine may have dozens."""
    described = {zone for part in node.parts if part.size or part.allocatable for zone in part.zones}
    described |= {core.zone for core in node.cores or ()}
    return tuple(zone for zone in node.zones if zone not in described)


def elsewhere(node: NodeDetail, marks: Marks) -> list[ZoneView]:
    """Devices of several zones, and of none."""
    drawer, wide = ZoneDrawer(node, marks), dict.fromkeys(part.zones for part in node.parts if len(part.zones) != 1)
    return [drawer.zone(zones) for zones in sorted(wide, key=lambda zones: (not zones, zones))]


class ZoneDrawer:
    def __init__(self, node: NodeDetail, marks: Marks) -> None:
        self._node, self._marks = node, marks
        self._cores: dict[int, list[Core]] = {}
        for core in node.cores or ():
            self._cores.setdefault(core.zone, []).append(core)

    def zone(self, zones: Zones) -> ZoneView:
        name = "-".join(map(str, zones)) or "none"
        cores = self._cores.get(zones[0], []) if len(zones) == 1 else []
        drawn = machine.cpus(zones[0], cores, self._node.cpus, self._marks) if cores else None
        parts = [part for part in self._node.parts if part.zones == zones and (part.allocatable or part.size)]
        return ZoneView(
            zones=zones,
            group=next((group for group in self._node.groups if zones and zones[0] in group), ()),
            cpus=boxes.svg(drawn, f"cpus-{name}") if drawn is not None else None,
            resources=tuple(self._resource(part, f"{name}-{place}") for place, part in enumerate(_ordered(parts))),
        )

    def _resource(self, part: Part, name: str) -> ResourceView:
        drawing = bars.bar(part, bars.holdings(part, self._node.pods), self._marks)
        return ResourceView(part, boxes.svg(drawing, name))


def _ordered(parts: Sequence[Part]) -> list[Part]:
    order = words.in_order({part.resource for part in parts})
    return sorted(parts, key=lambda part: order.index(part.resource))


def marked(node: NodeDetail) -> Marks:
    """Pods that hold something of a zone have letters, in the order of their names."""
    holding = sorted(pod.name for pod in node.pods if pod.holds or any(each.cpus for each in pod.containers))
    drawn = sorted({cpu.pod for cpu in node.cpus.values() if cpu.use is CpuUse.HELD} - set(holding))
    return Marks([*holding, *drawn])


async def _page(request: Request) -> Response:
    shown = await rendering.moment(request)
    node = await rendering.source(request).node(request.path_params["name"], rendering.asked_time(request))
    if node is None:
        raise HTTPException(404, "There is no such node")
    marks = marked(node)
    return rendering.page(
        request,
        "node",
        shown,
        here="fleet",
        node=node,
        marks=marks,
        sockets=sockets(node, marks),
        elsewhere=elsewhere(node, marks),
        silent=silent(node),
        distances=distances.zones(node),
        topology=distances.topology(node),
        meanings=distances.MEANINGS,
        uses={cpu.use for cpu in node.cpus.values()},
    )


ROUTES: Final = [Route("/node/{name:path}", _page)]
