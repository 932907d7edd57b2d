"""Zone ids are names: other names in the same order give the same answers under those names."""

from collections.abc import Mapping

from hypothesis import strategies as st
from msgspec import structs

from numalign.kubelet import start
from numalign.kubelet.admission import Outcome
from numalign.kubelet.machine.machine import Device, Machine, Zone
from numalign.kubelet.settings import Settings
from numalign.kubelet.state import ContainerPlacement
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import Hint
from numalign.kubelet.topologymanager.mask import Mask
from tests.campaigns import holds_for
from tests.strategies.lives import Life, lives

FOREIGN = 60
"""A zone that no drawn machine has, but some devices name."""

NAMES = st.sets(st.integers(0, 59), min_size=8, max_size=8).map(sorted)
Names = Mapping[int, int]


def renamed_mask(mask: Mask, names: Names) -> Mask:
    return masks.of(names[zone] for zone in masks.members(mask))


def renamed_zone(zone: Zone, names: Names) -> Zone:
    distances = [0] * (max(names.values()) + 1)
    for other, name in names.items():
        if other < len(zone.distances):
            distances[name] = zone.distances[other]
    return structs.replace(zone, id=names[zone.id], distances=tuple(distances))


def renamed_device(device: Device, names: Names) -> Device:
    return structs.replace(device, zones=device.zones and tuple(names[zone] for zone in device.zones))


def renamed_machine(machine: Machine, names: Names) -> Machine:
    plugins = {
        resource: structs.replace(plugin, devices=tuple(renamed_device(each, names) for each in plugin.devices))
        for resource, plugin in machine.devices.items()
    }
    return Machine(machine.name, tuple(renamed_zone(zone, names) for zone in machine.zones), plugins)


def renamed_settings(settings: Settings, names: Names) -> Settings:
    reserved = tuple(structs.replace(each, zone=names[each.zone]) for each in settings.reserved_memory)
    return structs.replace(settings, reserved_memory=reserved)


def renamed_placement(placed: ContainerPlacement, names: Names) -> ContainerPlacement:
    mask, preferred = placed.affinity
    return structs.replace(
        placed,
        affinity=Hint(None if mask is None else renamed_mask(mask, names), preferred),
        memory=tuple(structs.replace(block, zones=renamed_mask(block.zones, names)) for block in placed.memory),
    )


def spoken(outcome: Outcome, names: Names | None = None) -> tuple[object, ...]:
    placement = {
        name: placed if names is None else renamed_placement(placed, names)
        for name, placed in outcome.placement.items()
    }
    return outcome.verdict, outcome.reason, outcome.message, outcome.container, placement


@holds_for(lives(), NAMES, examples=60)
def test_a_machine_with_other_zone_ids_answers_the_same(life: Life, ids: list[int]) -> None:
    kubelet = life.kubelet
    names = {**dict(zip(kubelet.machine.zone_ids, ids, strict=False)), FOREIGN: FOREIGN + 3}
    other = start.start(renamed_machine(kubelet.machine, names), renamed_settings(kubelet.settings, names))
    expected = [spoken(each, names) for moment in life.moments() for each in moment.outcomes.values()]
    answers = [spoken(each) for moment in Life(other, life.steps).moments() for each in moment.outcomes.values()]
    assert answers == expected
