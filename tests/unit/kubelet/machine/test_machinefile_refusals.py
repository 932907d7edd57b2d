"""What no machine can be is refused, and the refusal names the field."""

import pytest
import yaml

from numalign.api import errors
from numalign.kubelet.machine import machinefile

REFUSED = {
    "not a mapping": ("[]", "", "a list is not a mapping"),
    "no zones": ("{}", "zones", "one zone or more"),
    "empty zones": ("zones: []", "zones", "one zone or more"),
    "zones not a list": ("zones: {0: {}}", "zones", "an object is not a list"),
    "zone not a mapping": ("zones: [5]", "zones[0]", "5 is not a mapping"),
    "unknown key": ("{zoned: []}", "zoned", "did you mean zones?"),
    "unknown key nothing like ours": ("{colour: red}", "colour", "known are name, extends, zones, devices"),
    "unknown zone key": ("zones: [{memroy: 1Gi}]", "zones[0].memroy", "did you mean memory?"),
    "empty key": ("{'': 1}", "''", "no field of this name"),
    "key that cannot be printed": ('{"a\\nb": 1}', "'a\\nb'", "no field of this name"),
    "key that is no text": ("{true: 1}", "true", "the key is not text"),
    "two zones of one id": ("zones: [{id: 1}, {id: 1}]", "zones[1].id", "another zone has the id 1"),
    "the position of a zone is another's id": ("zones: [{id: 1}, {}]", "zones[1].id", "another zone has the id 1"),
    "zone id too large": ("zones: [{id: 64}]", "zones[0].id", "64 is not between 0 and 63"),
    "negative zone id": ("zones: [{id: -1}]", "zones[0].id", "-1 is not between 0 and 63"),
    "zone id of a wrong type": ("zones: [{id: '0'}]", "zones[0].id", '"0" is not a whole number'),
    "more zones than ids": (f"zones: [{'{}, ' * 65}]", "zones[64].id", "64 is not between"),
    "CPU in two zones": ("zones: [{cpus: 0-3}, {cpus: 3-4}]", "zones[1].cpus", "CPUs 3 are in another core too"),
    "CPU in two cores": ("zones: [{cores: [[0, 1], [2, 1]]}]", "zones[0].cores[1]", "CPUs 1 are in another"),
    "CPU twice in a core": ("zones: [{cores: [[0, 0]]}]", "zones[0].cores[0]", "each once"),
    "core without CPUs": ("zones: [{cores: [[]]}]", "zones[0].cores[0]", "one or more CPUs"),
    "CPU of a preset's other zone": ("{extends: 2x16, zones: [{cpus: 16-17}]}", "zones[0].cpus", "CPUs 16-17 are in"),
    "CPUs of a preset taken": ("{extends: 2x16, zones: [{cpus: 16}, {memory: 1Gi}]}", "zones[1]", "CPUs 16 are in"),
    "unreadable CPU list": ("zones: [{cpus: 0..3}]", "zones[0].cpus", "not a CPU id or a range"),
    "CPU number beyond any machine": ("zones: [{cpus: 0-65536}]", "zones[0].cpus", "larger than 65535"),
    "bare CPU number beyond any machine": ("zones: [{cpus: 65536}]", "zones[0].cpus", "not between 0 and 65535"),
    "cpus and cores": ("zones: [{cpus: 0, cores: [[0]]}]", "zones[0].cores", "keep one of the two"),
    "half a core": ("zones: [{cpus: 0-2, threadsPerCore: 2}]", "zones[0].threadsPerCore", "3 CPUs do not make whole"),
    "threads of no CPUs": ("zones: [{threadsPerCore: 2}]", "zones[0].threadsPerCore", "the zone has no cpus"),
    "unknown numbering": ("zones: [{cpus: 0, numbering: odd}]", "zones[0].numbering", "not one of split, consecutive"),
    "core on no socket": ("zones: [{cpus: 0-1, socket: {0: 0}}]", "zones[0].socket", "CPU 1 is on no socket"),
    "core on two sockets": (
        "zones: [{cores: [[0, 1]], socket: {0: 0, 1: 1}}]",
        "zones[0].socket",
        "threads of one core, CPUs 0-1",
    ),
    "socket of a foreign CPU": ("zones: [{cpus: 0, socket: {0: 0-1}}]", "zones[0].socket", "CPUs 1 are not in this"),
    "socket that is no id": ("zones: [{cpus: 0, socket: {a: 0}}]", "zones[0].socket[a]", "not an id from 0"),
    "CPU under two L3": ("zones: [{cpus: 0, l3: {1: 0, 2: 0}}]", "zones[0].l3[2]", "in another list too"),
    "l3 and coresPerL3": ("zones: [{cpus: 0, l3: 1, coresPerL3: 1}]", "zones[0].coresPerL3", "keep one of the two"),
    "negative memory": ("zones: [{memory: -1Gi}]", "zones[0].memory", '"-1Gi" is not a number of bytes'),
    "part of a byte": ("zones: [{memory: 100m}]", "zones[0].memory", "not a number of bytes"),
    "memory beyond any machine": ("zones: [{memory: 1Ei}]", "zones[0].memory", "more than 64Pi"),
    "memory that is no quantity": ("zones: [{memory: 64GB}]", "zones[0].memory", '"64GB" is not a quantity'),
    "memory of a wrong type": ("zones: [{memory: [1]}]", "zones[0].memory", "a list is not a quantity"),
    "hugepages beyond memory": ("zones: [{memory: 1Gi, hugepages: {1Gi: 2}}]", "zones[0].hugepages", "memory of 1Gi"),
    "page size that is none": ("zones: [{hugepages: {3Mi: 1}}]", "zones[0].hugepages[3Mi]", "not a page size"),
    "page size in words": ("zones: [{hugepages: {huge: 1}}]", "zones[0].hugepages[huge]", "not a page size like 2Mi"),
    "page size twice": ("zones: [{hugepages: {1Gi: 0, 1024Mi: 0}}]", "zones[0].hugepages[1024Mi]", "given twice"),
    "part of a page": ("zones: [{hugepages: {2Mi: 3Mi}}]", "zones[0].hugepages[2Mi]", "not whole pages of 2Mi"),
    "negative pages": ("zones: [{hugepages: {2Mi: -1}}]", "zones[0].hugepages[2Mi]", "-1 is not between"),
    "distances too short": ("zones: [{distances: [10]}, {}]", "zones[0].distances", "has 1 distances, not 2"),
    "distances that forget a gap": ("zones: [{}, {id: 2, distances: [20, 10]}]", "zones[1].distances", "not 3"),
    "distances of a preset that no longer fit": ("{extends: 2x16, zones: [{id: 2}]}", "zones", "zone 0 has 2"),
    "distance zero": ("zones: [{distances: [0]}]", "zones[0].distances[0]", "0 is not between 1 and 255"),
    "distances not a list": ("zones: [{distances: 10}]", "zones[0].distances", "10 is not a list"),
    "unknown preset": ("extends: 2x61", "extends", "did you mean 2x16?"),
    "extends itself": ("&self {extends: *self}", "extends", "an object is not text"),
    "empty name": ("{name: '', zones: [{}]}", "name", "1 to 253 characters"),
    "name of a wrong type": ("{name: 5, zones: [{}]}", "name", "put it in quotes"),
}

DEVICES_REFUSED = {
    "resource without a domain": ("gpu: {0: 1}", "[gpu]", "not a name that a device plugin can register"),
    "unknown zone": ("a.io/b: {1: 1}", "[a.io/b][1]", "no zone 1; its zones are 0"),
    "one of the zones unknown": ("a.io/b: {'0,1': 1}", "[a.io/b][0,1]", "no zone 1"),
    "unknown zone of a listed device": ("a.io/b: {each: [{id: x, zones: 9}]}", "[a.io/b].each[0]", "no zone 9"),
    "zone twice": ("a.io/b: {'0,0': 1}", "[a.io/b][0,0]", "a zone is named twice"),
    "misspelt word": ("a.io/b: {unhealty: []}", "[a.io/b][unhealty]", "did you mean unhealthy?"),
    "device id twice": ("a.io/b: {0: [x, x]}", "[a.io/b][0]", 'device "x" is named twice'),
    "made id meets a given one": ("a.io/b: {0: 1, each: [{id: b-0}]}", "[a.io/b].each[0]", 'device "b-0" is named'),
    "empty id": ("a.io/b: {0: ['']}", "[a.io/b][0][0]", "not empty"),
    "id of a wrong type": ("a.io/b: {0: [7]}", "[a.io/b][0][0]", "put it in quotes"),
    "negative count": ("a.io/b: {0: -1}", "[a.io/b][0]", "-1 is not between"),
    "absurd count": ("a.io/b: {0: 9999999999}", "[a.io/b][0]", "is not between 0 and 65536"),
    "absurd count in total": ("{a.io/b: {0: 65536}, a.io/c: {0: 1}}", "[a.io/c][0]", "1 is not between 0 and 0"),
    "unhealthy stranger": ("a.io/b: {0: 1, unhealthy: [x]}", "[a.io/b].unhealthy[0]", 'no device has the id "x"'),
    "unknown key of a device": ("a.io/b: {each: [{id: x, zone: 0}]}", "[a.io/b].each[0].zone", "did you mean zones?"),
    "preferredAllocation in words": ("a.io/b: {preferredAllocation: 'on'}", "[a.io/b].preferredAllocation", "neither"),
    "plugin not a mapping": ("a.io/b: 4", "[a.io/b]", "4 is not a mapping"),
}
CASES = REFUSED | {
    f"device: {case}": (
        f"zones: [{{}}]\ndevices: {text if text[0] == '{' else '{' + text + '}'}",
        f"devices{field}",
        why,
    )
    for case, (text, field, why) in DEVICES_REFUSED.items()
}


@pytest.mark.parametrize("text, field, why", CASES.values(), ids=CASES)
def test_what_no_machine_can_be_is_refused_by_name(text: str, field: str, why: str) -> None:
    with pytest.raises(errors.BadObject) as refusal:
        machinefile.read(yaml.safe_load(text), "box.yaml")
    assert (refusal.value.kind, refusal.value.name, refusal.value.field) == ("Machine", "box.yaml", field)
    assert why in refusal.value.why
