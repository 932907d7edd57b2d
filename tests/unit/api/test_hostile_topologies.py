"""Hostile reports, attributes, fingerprints and placements: refused by name or read safely, and nothing else.

Every case starts from something in order and breaks it where it hurts: a value of another type, a list item twice or
gone, a number at a limit, a separator in the middle of a text, bytes cut or flipped. The campaign runs tens of
thousands of them, the fast tier a few hundred; both with fixed seeds, so a failure comes back.
"""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from numalign.api.attributes import attributes
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies, MemoryZone
from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.decode import structs
from numalign.api.decode.quantity import INT64_MAX
from numalign.api.errors import BadObject
from numalign.api.nrt import fingerprint, normalise, placementcodec
from numalign.api.nrt import wire as nrtwire
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager

FAST, CAMPAIGN = 150, 9_000

JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 63, 64, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308, float("inf"), float("nan"),
    "", " ", "0", "-1", "1e400", "9" * 400, "node-0", "node-64", "node-99999999999", "Node", "\x00", "\u202e", "é",
    "v1;", "v2;x", "%", "%ZZ", "none", "cpu", "memory", "1Ki", "0-65535", "0-99999999", "pfp0v001", "npv0v001::",
    [], [[]], [None], {}, {"name": None}, {"name": "cpu"}, "x" * 3000, ["x"] * 50,
]  # fmt: skip
SIGNS = ';:,=|+*@~%/.-!x0918 \x00éЖ"{}[]~f'


SIGNATURE = fingerprint.of([("shop", "web")])
REFS = [placementcodec.ContainerRef("shop", f"web-{number}", "app") for number in range(80)]
PAYLOAD = placementcodec.encode({ref: place % 2 for place, ref in enumerate(REFS)}, 2)


def in_order() -> NodeTopology:
    """A report with everything in it."""
    room = {name: Amounts(8000, 7000, 3000) for name in ("cpu", "memory", "hugepages-1Gi", "example.com/nic")}
    block = MemoryBlock(type="memory", zones=0b11, size=3 << 30)
    held = HeldDevices(resource="example.com/nic", zones=1, count=1, ids=("0000:3b:00.2",))
    app = Holding(container="app", cpus=0b1100, memory=(block,), devices=(held,))
    pod = PodPlacement(namespace="shop", name="web", uid="00f4a1b2-c3d4-4e5f-8a9b-0c1d2e3f4a5b", holdings=(app,))
    return NodeTopology(
        node="worker-7",
        manager=TopologyManager("restricted", "pod"),
        zones=tuple(Zone(id=zone, resources=room, costs={0: 10, 1: 21}, attributes={"a": "b"}) for zone in (0, 1)),
        fingerprint=Fingerprint(SIGNATURE),
        placement=PAYLOAD,
        facts=attributes.NodeFacts(
            managers=ManagerPolicies(cpu="static", cpu_options={"full-pcpus-only": "true"}, memory="Static"),
            kubelet=KubeletBuild(version="v1.36.2", feature_gates={"PodLevelResourceManagers": True}),
            reserved_cpus=0b11,
            reserved_memory={0: {"memory": 1 << 30}},
            cores=tuple(Core((cpu, cpu + 8), zone=cpu // 4, socket=0, l3=cpu // 4) for cpu in range(8)),
            default_cpus=0b11110011,
            memory=(MemoryZone(zone=0, assignments=1, cells=1, free={"memory": 5 << 30}),),
            devices=(DeviceCount(resource="example.com/nic", zones=0b11, total=4, healthy=3, free=2),),
            placements=(pod,),
        ),
        attributes={"cpu_core": "0-7"},
    )


TOPOLOGY = in_order()
DOCUMENT = json.loads(structs.encode(normalise.encode(TOPOLOGY))) | {"topologyPolicies": ["RestrictedPodLevel"]}
ATTRIBUTES = attributes.write(TOPOLOGY.facts)
TEXTS = [item for item in JUNK if isinstance(item, str)]


def broken_text(rng: random.Random, text: str) -> str:
    """The text with a few signs replaced, inserted, doubled or cut."""
    for _ in range(rng.randint(1, 4)):
        place, end = sorted(rng.choices(range(len(text) + 1), k=2))
        change = rng.randrange(4)
        if change == 0:
            text = text[:place] + rng.choice(SIGNS) + text[place + 1 :]
        elif change == 1:
            text = text[:place] + rng.choice(SIGNS) * rng.choice((1, 1, 30)) + text[place:]
        elif change == 2:
            text = text[:place] + text[place:end] * 2 + text[end:]
        else:
            text = text[:place] + text[end:]
    return text


def places(thing: Any) -> list[tuple[Any, Any]]:
    """Every container in the document with every key or index in it."""
    found: list[tuple[Any, Any]] = []
    for key in list(thing) if isinstance(thing, dict) else range(len(thing)) if isinstance(thing, list) else ():
        found += [(thing, key), *places(thing[key])]
    return found


def broken_document(rng: random.Random) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(DOCUMENT)
    for _ in range(rng.randint(1, 4)):
        holder, key = rng.choice(places(document) or [(document, "zones")])
        change = rng.randrange(5)
        if change == 0:
            holder.pop(key, None) if isinstance(holder, dict) else holder.pop(key)
        elif change == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif change == 2 and isinstance(holder, dict):
            holder[str(rng.choice(JUNK))] = holder.get(key)
        elif change == 3 and isinstance(holder, list | dict) and isinstance(holder[key], str):
            holder[key] = broken_text(rng, holder[key])
        else:
            holder[key] = copy.deepcopy(rng.choice(JUNK))
    return document


def broken_bytes(rng: random.Random) -> bytes:
    raw = bytearray(structs.encode(normalise.encode(TOPOLOGY)))
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(raw))
        change = rng.randrange(3)
        if change == 0:
            raw[place] = rng.randrange(256)
        elif change == 1:
            del raw[place : place + rng.randint(1, 20)]
        else:
            raw[place:place] = rng.choice((b"null", b"[", b"}", b"1e999", b'"', b"9" * 30, b"\\u0000"))
    return bytes(raw)


def assert_sound(topology: NodeTopology) -> None:
    """What the engine relies on, and that the topology can be written and read again unchanged."""
    assert [zone.id for zone in topology.zones] == sorted({zone.id for zone in topology.zones})
    for zone in topology.zones:
        for amounts in zone.resources.values():
            assert 0 <= amounts.available <= amounts.allocatable <= amounts.capacity <= INT64_MAX
    assert all(guess.field and len(guess.found + guess.used) < 400 for guess in topology.guesses)
    again = normalise.normalise(normalise.encode(topology))
    assert msgspec.structs.replace(again, guesses=()) == msgspec.structs.replace(topology, guesses=())


def document(rng: random.Random) -> Exception | None:
    try:
        report = nrtwire.decode(broken_document(rng))
    except BadObject as problem:
        return problem
    assert_sound(normalise.normalise(report))
    return None


def raw_bytes(rng: random.Random) -> Exception | None:
    try:
        report = nrtwire.decode(broken_bytes(rng))
    except BadObject as problem:
        return problem
    assert_sound(normalise.normalise(report))
    return None


def attribute(rng: random.Random) -> Exception | None:
    name = rng.choice(sorted(ATTRIBUTES))
    value = rng.choice(TEXTS) if rng.random() < 0.1 else broken_text(rng, ATTRIBUTES[name])
    try:
        fact = attributes.decode("worker-7", name, value)
    except BadObject as problem:
        return problem
    if not isinstance(fact, attributes.Unknown):
        codec = attributes.CODECS[name]
        assert codec.decode(codec.encode(fact)) == fact
    return None


def pod_set(rng: random.Random) -> Exception | None:
    text = broken_text(rng, SIGNATURE)
    try:
        fingerprint.check(text, [("shop", "web")])
    except fingerprint.FingerprintError as problem:
        return problem
    assert text == SIGNATURE
    return None


def placement(rng: random.Random) -> Exception | None:
    metadata = broken_text(rng, PAYLOAD.metadata) if rng.random() < 0.3 else PAYLOAD.metadata
    vectors = {zone: broken_text(rng, vector) for zone, vector in PAYLOAD.vectors.items()}
    try:
        placed = placementcodec.decode(placementcodec.parse_metadata(metadata, vectors), REFS)
    except placementcodec.PlacementError as problem:
        return problem
    assert set(placed) == set(REFS)
    return None


def names_its_fault(problem: Exception) -> bool:
    if isinstance(problem, fingerprint.FingerprintError | placementcodec.PlacementError):
        return bool(problem.reason)
    return isinstance(problem, BadObject) and bool(problem.why) and problem.kind == "NodeResourceTopology"


def names_a_field(problem: Exception) -> bool:
    wanted = ("kind", "apiVersion", "metadata.name", *(f"attributes[{name}]" for name in ATTRIBUTES))
    return isinstance(problem, BadObject) and problem.field in wanted


ATTEMPTS: dict[str, tuple[Callable[[random.Random], Exception | None], Callable[[Exception], bool]]] = {
    "documents": (document, names_a_field),
    "bytes": (raw_bytes, names_its_fault),
    "attributes": (attribute, names_a_field),
    "fingerprints": (pod_set, names_its_fault),
    "placements": (placement, names_its_fault),
}


@pytest.mark.parametrize("attempt, is_clear", ATTEMPTS.values(), ids=ATTEMPTS)
@pytest.mark.parametrize("cases", [FAST, pytest.param(CAMPAIGN, marks=pytest.mark.slow)])
def test_hostile_input_is_refused_by_name_or_read_safely(
    attempt: Callable[[random.Random], Exception | None], is_clear: Callable[[Exception], bool], cases: int
) -> None:
    outcomes = [attempt(random.Random(f"{cases}-{seed}")) for seed in range(cases)]
    refusals = [problem for problem in outcomes if problem is not None]
    assert [problem for problem in refusals if not is_clear(problem)] == []
    assert 0 < len(refusals) < cases
