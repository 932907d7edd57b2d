"""Our agent's report in NFD's form beside what the real topology updater writes about the same node."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from numalign.agent import main
from numalign.agent.main import Places
from numalign.agent.publish import forms
from numalign.api.nrt import normalise, wire
from numalign.api.nrt.nodetopology import NodeTopology, Zone
from numalign.kube.resources import TOPOLOGIES
from tests.lab import live as lives
from tests.lab.fleet import UPDATED as NODE
from tests.lab.live import Live


def ours(live: Live) -> NodeTopology:
    """As its readers understand it, which does not depend on any order (exporter spec, D-09)."""

    async def looked() -> NodeTopology:
        root = Path("/proc", str(live.node(NODE).parts["runtime"].pid), "root")
        async with main.snapshot_reader(Places(host=root)) as (looker, _):
            look = await looker.look(fresh=True)
        assert look.inventory is not None
        return normalise.normalise(wire.decode(forms.document(look.inventory.report(NODE, "nfd"), "nfd")))

    return live.run(looked())


def comparable(topology: NodeTopology) -> NodeTopology:
    """The updater looks for memory in /sys/bus/node, where a lab shows the zones of the machine that it runs on."""
    return structs.replace(topology, zones=tuple(map(_without_size_of_memory, topology.zones)))


def _without_size_of_memory(zone: Zone) -> Zone:
    memory = structs.replace(zone.resources["memory"], capacity=0)
    return structs.replace(zone, resources={**zone.resources, "memory": memory})


def test_nfds_form_says_what_nfd_says(single: Live) -> None:
    single.create(lives.guaranteed("web", 3, "2Gi", nodeName=NODE), lives.guaranteed("db", 5, "4Gi", nodeName=NODE))
    for name in ("web", "db"):
        single.settled(name)
    wanted = ours(single)

    async def same() -> bool:
        theirs = normalise.normalise(await single.client.get(TOPOLOGIES.at(NODE)))
        return comparable(theirs) == comparable(wanted)

    assert single.awaited(same, f"NFD writes something else than {wanted}")
