"""Generates texts and small lists for the publishers' tables: names, patterns, files, fingerprints and attributes."""

from random import Random
from typing import Any, Final

from numalign.api.nrt import fingerprint
from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.draws import chance, some, weighted

LETTERS: Final = "ab-*?[]^!\\.é"
PIECES: Final = (
    *("*", "?", "[a-b]", "[^a]", "[!a]", "[^b-a]", "[b-a]", "[]a]", "[a", "[-a]", "[a-]", "[\\]a]", "[^]", ""),
)
NAMES: Final = ("foo", "bar", "buz", "", "Foo", "topologyManagerPolicy")
POLICIES: Final = ("none", "best-effort", "restricted", "single-numa-node", "None", "", "best-effort ", "other")
SCOPES: Final = ("container", "pod", "", "Pod", "other")
SIZES: Final = (4, 8, 16, 64, 512, 1024, 2048, 4096, 16384, 32768, 65536, 524288, 1048576, 2097152, 16777216, 3, 100)
TOTALS: Final = (
    *("Node 0 MemTotal:       32718644 kB", "Node 0 MemTotal: 0 kB", "Node 0 MemTotal:\t12 kB", "MemTotal: 7"),
    *("Node 0 MemTotal: 12kB", "Node 0 MemTotal: abc kB", "Node 0 MemTotal 12 kB", "Node 0 MemTotal: 1:2 kB"),
    *("Node 0 MemTotal: -5 kB", "Node 0 MemTotal: +5 kB", "Node 0 MemTotal:", "Node 0 MemTotal: 1 2 kB"),
    *("Node 0 MemTotal: 0012 kB", "Node 0 MemTotal: 12 MB", "Node 0 MemTotal: 1_000 kB", "Node 0 MemTotalX: 3 kB"),
)
ZONE_NUMBERS: Final = (
    *("0", "7", "+5", "-1", "007", "", "1 ", " 1", "0x1", "1_0", "5-1", "65535", "65536", "9" * 18, "9" * 20),
    *("1e3", "٣", "-0"),
)
OTHER_LINES: Final = ("Node 0 MemFree: 1 kB", "", "Node 0 MemUsed:        29802656 kB", "nonsense")


def spoiled(rng: Random, row: Case) -> Case:
    """The row, sometimes with null for an empty list: Go does not distinguish them."""
    return _without_lists(row) if chance(rng, 0.05) else row


def _without_lists(value: Any) -> Any:
    match value:
        case dict():
            return {key: each if key == "numa" else _without_lists(each) for key, each in value.items()}
        case list():
            return [_without_lists(each) for each in value] or None
    return value


def _text(rng: Random, letters: str, longest: int) -> str:
    return "".join(rng.choice(letters) for _ in range(rng.randint(0, longest)))


def locality(rng: Random) -> Case:
    return {"numa": rng.choice((None, [], [-1], [0], [1, -1], [-1, 3], [-2], [63]))}


def patterns(rng: Random) -> Case:
    namespace, name = rng.choice(("a", "ab", "b")), _text(rng, "ab-.é!]", 5)
    listed = [
        {"namespacePattern": rng.choice(("*", "a*", _pattern(rng, namespace))), "namePattern": _pattern(rng, name)}
        for _ in range(rng.randint(0, 3))
    ]
    return {"patterns": listed, "namespace": namespace, "name": name}


def _pattern(rng: Random, name: str) -> str:
    """A pattern, often one that could match the name."""
    if chance(rng, 0.2):
        return _text(rng, LETTERS, 6)
    return "".join(rng.choice((*PIECES, letter, letter, letter, f"\\{letter}", f"[{letter}]")) for letter in name)


def finished(rng: Random) -> Case:
    pods = [[namespace, name] for namespace in ("a", "b") for name in ("x", "y", "")]
    return {"terminal": some(rng, pods, 0.4), "listed": some(rng, pods, 0.6)}


def endpoint(rng: Random) -> Case:
    scheme = rng.choice(("unix", "unix", "unix", "UNIX", "fake", "tcp", "http", ""))
    mark = rng.choice(("://", "://", "://", ":", "//", ""))
    path = rng.choice(
        ("/my/path", "", "/", "host/path", "/a//b", "/a/../b", "/a/", "/a b", "/a%20b", "/a?x=1", "/a#f", "/%zz", "/é")
    )
    return {"endpoint": f"{scheme}{mark}{path}"}


def reference(rng: Random) -> Case:
    parts = [
        rng.choice(("ns", "pod", "", " c ", "a b", "\tx")) for _ in range(weighted(rng, {3: 6, 0: 1, 1: 1, 2: 1, 4: 1}))
    ]
    return {"text": "/".join(parts)}


def pool(rng: Random) -> Case:
    names = [[namespace, pod, container] for namespace in "ab" for pod in "pq" for container in ("c", "d")]
    listed = some(rng, names, 0.5)
    containers = [{"id": each, "cpus": [rng.randrange(8) for _ in range(rng.randrange(5))]} for each in listed]
    return {"reference": rng.choice((*names, ["", "", ""])), "containers": containers}


def tree(rng: Random) -> Case:
    files: dict[str, str] = {}
    for zone in rng.sample(range(12), rng.randint(1, 4)):
        folder = f"devices/system/node/node{zone}"
        if not chance(rng, 0.03):
            total = rng.choice(TOTALS) if chance(rng, 0.05) else f"Node {zone} MemTotal: {rng.randrange(1 << 30)} kB"
            files[f"{folder}/meminfo"] = f"{total}\n"
        for size in some(rng, SIZES[:-2], 0.3) or ([] if chance(rng, 0.1) else [2048]):
            number = rng.choice(("", "x", "-1", "1.5")) if chance(rng, 0.01) else str(rng.randrange(99))
            files[f"{folder}/hugepages/hugepages-{size}kB/nr_hugepages"] = f"{number}\n"
    return {"files": files}


def meminfo(rng: Random) -> Case:
    lines = [rng.choice(OTHER_LINES) for _ in range(rng.randrange(3))]
    lines[rng.randint(0, len(lines)) : 0] = [rng.choice(TOTALS) for _ in range(weighted(rng, {1: 8, 0: 1, 2: 1}))]
    return {"text": "\n".join(lines) + rng.choice(("\n", ""))}


def page_size(rng: Random) -> Case:
    return {"size_kb": rng.choice((*SIZES, rng.randint(1, 5000)))}


def excluded(rng: Random) -> Case:
    names = ("cpu", "memory", "hugepages-2Mi", "v/nic", "v/gpu", "")
    config = {node: some(rng, names, 0.4) for node in some(rng, ("*", "node1", "node2", ""), 0.5)}
    return {"config": config, "node": rng.choice(("node1", "node2", "*", "")), "asked": list(names)}


def policy(rng: Random) -> Case:
    return {"policy": rng.choice(POLICIES), "scope": rng.choice(SCOPES)}


def _named_pods(rng: Random) -> list[Case]:
    return [
        {"namespace": _text(rng, "ab-é", 6), "name": _text(rng, "abcdefgh-.é", rng.choice((3, 12, 70)))}
        for _ in range(weighted(rng, {0: 1, 1: 2, 3: 3, 5: 2, 40: 0.3}))
    ]


def signed(rng: Random) -> Case:
    return {"pods": _named_pods(rng)}


def checked(rng: Random) -> Case:
    pods = _named_pods(rng)
    right = fingerprint.of((pod["namespace"], pod["name"]) for pod in pods)
    place = rng.randrange(len(right))
    wrong = (
        *("", right[:place], right + "0", right.upper(), right[:8], right[:16]),
        *(right[:place] + "x" + right[place + 1 :], "é" + right[1:], right[:6] + "é" + right[7:]),
        *("é" * 8, "pfp0v00é" + right[8:]),
    )
    return {"pods": pods, "fingerprint": right if chance(rng, 0.3) else rng.choice(wrong)}


def version(rng: Random) -> Case:
    return {"version": rng.choice(("", "v001", "v002", "v00", "v0011", "V001", "é01", "éé", "ééé", "0001"))}


def zone_id(rng: Random) -> Case:
    return {"id": rng.choice((0, 1, 63, 1023, 65535, 65536, 1 << 40, -1, -7, rng.randrange(1 << 16)))}


def zone_name(rng: Random) -> Case:
    prefix = rng.choice(("node-", "node-", "node-", "node", "Node-", "cell-", "", " node-"))
    number = rng.choice(ZONE_NUMBERS)
    return {"name": prefix + number}


def _attributes(rng: Random) -> list[Case]:
    return [{"name": rng.choice(NAMES), "value": rng.choice(("1", "", "x"))} for _ in range(rng.randrange(6))]


def attribute(rng: Random) -> Case:
    return {"attrs": _attributes(rng), "name": rng.choice(NAMES)}


def insertion(rng: Random) -> Case:
    return {"attrs": _attributes(rng), "insert": {"name": rng.choice(NAMES), "value": "new"}}


def merge(rng: Random) -> Case:
    return {"existing": _attributes(rng), "updated": _attributes(rng)}
