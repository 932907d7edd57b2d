"""The managers' state files: read as real kubelets wrote them, refused when they do not add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import checkpoints
from numalign.api import errors
from numalign.api.decode import cpuset
from numalign.kubelet.memory.state import Block, Table, ZoneMemory

DATA = Path(__file__).parents[1] / "data" / "checkpoints"
"""Written by kubelet 1.37.1: two pods on two zones, with CPUs, memory, GPUs, a device on both zones, one on none."""
FIRST, SECOND = "f423cfbc-8041-46e9-af6f-af962d9d22cf", "521cebac-8ede-459f-815f-c2eafb34dfc7"
READERS = {"cpu": checkpoints.cpu, "memory": checkpoints.memory, "devices": checkpoints.devices}
# Of a kubelet without a policy, as found in public bug reports.
IDLE = b'{"policyName":"none","defaultCpuSet":"","checksum":1353318690}'


def raw(name: str) -> bytes:
    return (DATA / f"{name}.json").read_bytes()


def older(name: str, **changes: Any) -> bytes:
    """The same as older kubelets write it: no content as text."""
    told = json.loads(raw(name)) | changes
    return json.dumps({key: value for key, value in told.items() if key not in ("data", "dataChecksum")}).encode()


def test_cpus_are_read_by_pod_and_container() -> None:
    told = checkpoints.cpu(raw("cpu"))
    assert told.policy == "static"
    assert cpuset.text(told.state.default) == "0,5-16,19-31"
    assert told.state.assignments == {FIRST: {"app": cpuset.parse("1-4")}, SECOND: {"app": cpuset.parse("17-18")}}


def test_memory_is_read_by_zone_and_by_container() -> None:
    told = checkpoints.memory(raw("memory"))
    nothing = Table(0)
    tables = {"hugepages-1Gi": nothing, "hugepages-2Mi": nothing, "memory": Table(32644268032, 1 << 30)}
    assert told.state.zones[0] == ZoneMemory(cells=1, tables=tables, assignments=1)
    assert told.state.held(SECOND, "app") == (Block("memory", 2, 1 << 30),)
    assert told.sizes[1]["memory"] == checkpoints.Sizes(34359738368, 536870912, 33822867456)


def test_devices_have_their_zones() -> None:
    told = checkpoints.devices(raw("devices"))
    assert told.state.held(SECOND, "app") == {
        "example.com/fabric": frozenset({"fabric-0"}),
        "example.com/gpu": frozenset({"gpu-4", "gpu-5"}),
    }
    assert told.zones["example.com/fabric"] == {"fabric-0": (0, 1)}
    assert told.zones["example.com/licence"] == {"licence-4": None}
    assert len(told.registered["example.com/gpu"]) == 8


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_older_kubelets_say_the_same_without_the_text(name: str) -> None:
    assert READERS[name](older(name)) == READERS[name](raw(name))


def test_an_idle_kubelet_has_nothing_assigned() -> None:
    told = checkpoints.cpu(IDLE)
    assert (told.policy, told.state.default, told.state.assignments) == ("none", 0, {})


def test_content_without_a_checksum_is_refused() -> None:
    with pytest.raises(errors.BadObject, match="checksum: is 0, but the content has"):
        checkpoints.cpu(b'{"policyName":"none","defaultCpuSet":"0-3"}')


def sealed(content: dict[str, Any]) -> bytes:
    """As newer kubelets write content."""
    data = json.dumps(content)
    return json.dumps({"data": data, "dataChecksum": checkpoints.of_text(data)}).encode()


def test_pod_level_cpus_are_read() -> None:
    content = {"policyName": "static", "defaultCpuSet": "0-1", "podEntries": {"u": {"cpuSet": "2-3"}}}
    assert checkpoints.cpu(sealed(content)).state.pods == {"u": 0b1100}


def test_pod_level_memory_is_read() -> None:
    blocks = [{"numaAffinity": [0, 1], "type": "memory", "size": 7}]
    content = {"policyName": "Static", "machineState": {}, "podEntries": {"u": {"memoryBlocks": blocks}}}
    assert checkpoints.memory(sealed(content)).state.pods == {"u": (Block("memory", 3, 7),)}


CHANGED = {
    "a CPU moved": ("cpu", {"defaultCpuSet": "0-16,19-31"}),
    "a pod removed": ("cpu", {"entries": {}}),
    "another policy": ("memory", {"policyName": "None"}),
    "memory freed": ("memory", {"machineState": {}}),
}


@pytest.mark.parametrize("name, change", CHANGED.values(), ids=CHANGED)
def test_content_that_does_not_fit_its_checksum_is_refused(name: str, change: dict[str, Any]) -> None:
    with pytest.raises(errors.BadObject, match=r"checksum: is \d+, but the content has \d+; the file is half-written"):
        READERS[name](older(name, **change))


@pytest.mark.parametrize("name, word", [("cpu", b"5-16"), ("memory", b"32644268032"), ("devices", b"gpu-4")])
def test_a_changed_word_of_the_content_is_noticed(name: str, word: bytes) -> None:
    before, _, after = raw(name).rpartition(word)
    with pytest.raises(errors.BadObject, match="checksum"):
        READERS[name](before + word[:-1] + b"7" + after)


def test_a_changed_word_of_the_copy_for_older_kubelets_does_not_matter() -> None:
    assert checkpoints.cpu(raw("cpu").replace(b"5-16", b"5-17", 1)) == checkpoints.cpu(raw("cpu"))


@pytest.mark.parametrize("name", READERS)
def test_a_half_written_file_is_refused_wherever_it_ends(name: str) -> None:
    whole = raw(name)
    for end in range(0, len(whole), 97):
        with pytest.raises(errors.BadObject):
            READERS[name](whole[:end])


def test_a_file_of_absurd_length_is_refused() -> None:
    with pytest.raises(errors.BadObject, match="no kubelet writes that much"):
        checkpoints.cpu(b" " * (checkpoints.LARGEST + 1))


STRANGE = {
    "a zone beyond all": {"numaAffinity": [64], "type": "memory", "size": 1},
    "a zone below all": {"numaAffinity": [-1], "type": "memory", "size": 1},
    "less than nothing": {"numaAffinity": [0], "type": "memory", "size": -1},
}


@pytest.mark.parametrize("block", STRANGE.values(), ids=STRANGE)
def test_what_no_kubelet_can_mean_is_refused(block: dict[str, Any]) -> None:
    content = {"policyName": "Static", "machineState": {}, "entries": {"u": {"c": [block]}}}
    with pytest.raises(errors.BadObject, match=r"Checkpoint memory_manager_state(, entries|: names a zone)"):
        checkpoints.memory(sealed(content))
