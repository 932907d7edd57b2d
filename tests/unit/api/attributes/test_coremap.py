"""The map of cores: exact for any machine, short for a regular one."""

import pytest
from hypothesis import given

from numalign.api.attributes import coremap
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.grammar import AttributeTextError
from tests import topology_strategies as some

MAPS: dict[str, tuple[list[Core], str]] = {
    "no cores": ([], ""),
    "threads side by side": ([Core((0, 1), 0, 0), Core((2, 3), 0, 0), Core((4, 5), 0, 0)], "0.0.-:0+1*3/2"),
    "threads in two halves": (
        [Core((0, 4), 0, 0, 0), Core((1, 5), 0, 0, 0), Core((2, 6), 0, 0, 1)], "0.0.0:0+4*2;0.0.1:2+6"
    ),
    "zones take turns": ([Core((cpu,), cpu % 2, cpu % 2) for cpu in range(6)], "0.0.-:0*3/2;1.1.-:1*3/2"),
    "a CPU is offline": ([Core((0, 4), 0, 0), Core((1,), 0, 0), Core((2, 6), 0, 0)], "0.0.-:0+4,1,2+6"),
    "a gap in the ids": ([Core((0,), 0, 0), Core((1,), 0, 0), Core((8,), 0, 0), Core((9,), 0, 0)], "0.0.-:0*2,8*2"),
    "zone ids with a gap": ([Core((0,), 0, 0), Core((1,), 8, 1)], "0.0.-:0;8.1.-:1"),
    "fast and slow cores": (
        [Core((0, 1), 0, 0, 0), Core((2, 3), 0, 0, 0), Core((4,), 0, 0, 1)], "0.0.0:0+1*2/2;0.0.1:4"
    ),
}  # fmt: skip
REFUSED = {
    "CPU in two cores": "0.0.-:0+1,1+2",
    "CPU twice in a core": "0.0.-:3+3",
    "CPU in two groups": "0.0.-:0;1.0.-:0",
    "runs overlap": "0.0.-:0+1*4",
    "no place": "0+1",
    "no cores in a group": "0.0.-:",
    "no L3 and no dash": "0.0.:1",
    "run of none": "0.0.-:0*0",
    "run without a step": "0.0.-:0*2/0",
    "more CPUs than any machine": "0.0.-:0*99999/99999",
    "CPU id of many digits": "0.0.-:" + "9" * 5000,
    "nothing between two plus signs": "0.0.-:0++1",
    "zone too high": "99999.0.-:1",
}


@pytest.mark.parametrize("cores, text", MAPS.values(), ids=MAPS)
def test_machines_have_short_texts(cores: list[Core], text: str) -> None:
    assert coremap.encode(cores) == text
    assert coremap.decode(text) == tuple(cores)


@given(some.core_tuples())
def test_any_machine_is_read_back_exactly(cores: tuple[Core, ...]) -> None:
    assert coremap.decode(coremap.encode(cores)) == cores


def test_a_machine_of_256_cpus_and_16_caches_takes_a_quarter_kilobyte() -> None:
    cores = tuple(Core((cpu, cpu + 128), zone=cpu // 16, socket=cpu // 64, l3=cpu // 8) for cpu in range(128))
    assert len(coremap.encode(cores)) < 256


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_impossible_machines_are_refused(text: str) -> None:
    with pytest.raises(AttributeTextError):
        coremap.decode(text)
