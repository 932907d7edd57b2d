import pytest
from msgspec import structs

from numalign.kubelet.machine import presets
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import Settings
from numalign.simulator.nodes import specs
from numalign.simulator.nodes.specs import NodeTypes

GPUS = presets.machine("gpu-8")


def test_equal_nodes_share_one_kubelet() -> None:
    known = NodeTypes()
    assert known.of(presets.machine("2x16"), Settings()) is known.of(presets.machine("2x16"), Settings())


def test_other_machines_and_other_settings_have_their_own() -> None:
    known = NodeTypes()
    found = {id(known.of(GPUS, Settings())), id(known.of(GPUS, Settings(max_pods=5)))}
    assert len(found | {id(known.of(presets.machine("2x16"), Settings()))}) == 3


def test_a_kubelet_that_would_not_start_is_refused() -> None:
    with pytest.raises(StartRefusal):
        NodeTypes().of(GPUS, Settings(cpu_policy="static"))


def test_one_device_falls_ill_and_all_can_be_made_well() -> None:
    ill = specs.with_health(GPUS, presets.GPU, "gpu-3", healthy=False)
    assert [each.id for each in ill.devices[presets.GPU].devices if not each.healthy] == ["gpu-3"]
    assert specs.all_healthy(ill) == GPUS


def test_the_machine_itself_is_left_as_it_was() -> None:
    before = structs.asdict(GPUS)
    specs.with_health(GPUS, presets.GPU, "gpu-3", healthy=False)
    assert structs.asdict(GPUS) == before
