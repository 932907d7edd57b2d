"""Malformed input by the thousand, from a seed: valid texts and objects with a few things broken."""

import copy
import datetime
import random
from collections.abc import Iterator
from typing import Any

Slot = tuple[Any, Any]

QUANTITIES = ["0", "1", "1500m", "4Gi", "1.5Gi", "0.1Ki", "12e6", "1E3", "-2", "+.5", "9223372036854775807", "100n"]
CPUSETS = ["", "0", "0-3", "0-3,8", "1,3,5,7", "0-65535", "64-127,192-255"]
ALPHABET = "0123456789.,-+eEinumkKMGTP \t\n\0x_٣½🙂\ud800"

# What JSON can carry, and what only a parsed mapping can.
ABSURD: list[Any] = [
    None, True, False, 0, -1, 2**31, -(2**63), 2**64, 10**30, 1.5, -0.0, 1e300, "", " ", "x", "-1", "1e999999999", "\0",
    "٣", "🙂\u202e", "\x1b[2J", "9" * 5000, "x" * 5000, [], {}, [[]], [None], [{}], {"": ""}, {"a": {"b": [1]}},
]  # fmt: skip
UNWRITABLE: list[Any] = [
    10**5000, -(10**5000), float("nan"), float("inf"), "\ud800", b"x", object(), {1, 2}, {1: 2}, {None: 3}, 1j, (),
    ("x",), datetime.date(2026, 11, 1), type, Ellipsis,
]  # fmt: skip

POD: dict[str, Any] = {
    "metadata": {
        "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 1,
        "labels": {"app": "web"}, "annotations": {"note": "x"}, "finalizers": ["a/b"],
        "creationTimestamp": "2026-11-01T10:00:00Z", "deletionGracePeriodSeconds": 30,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}],
    },
    "spec": {
        "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
        "containers": [
            {
                "name": "main", "image": "x", "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}],
                "resources": {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": 2, "example.com/nic": 1}},
            }
        ],
        "resources": {"requests": {"cpu": "4"}, "limits": {"hugepages-2Mi": "4Mi"}}, "overhead": {"cpu": "250m"},
        "nodeName": "worker-7", "schedulerName": "numalign", "priority": 7, "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "schedulingGates": [{"name": "quota"}], "terminationGracePeriodSeconds": 30, "hostNetwork": True,
    },
    "status": {
        "phase": "Running", "qosClass": "Burstable", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "ready": True, "restartCount": 1, "allocatedResources": {"cpu": "2"}}],
    },
}  # fmt: skip
NODE: dict[str, Any] = {
    "metadata": {"name": "worker-7", "labels": {"zone": "a"}, "annotations": {}},
    "spec": {"unschedulable": False, "taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "64", "memory": "256Gi", "example.com/nic": 4}, "allocatable": {"cpu": "62"},
        "conditions": [{"type": "Ready", "status": "True"}], "images": [{"names": ["x"], "sizeBytes": 1}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}],
        "nodeInfo": {"kubeletVersion": "v1.37.1", "architecture": "amd64"},
    },
}  # fmt: skip


def texts(seeds: list[str], count: int, *, seed: int) -> Iterator[str]:
    """The seed texts with up to five characters put in, taken out or replaced, now and then at absurd length."""
    rng = random.Random(seed)
    for _ in range(count):
        characters = list(rng.choice(seeds))
        for _ in range(rng.randint(1, 5)):
            place = rng.randint(0, len(characters))
            characters[place : place + rng.randint(0, 1)] = rng.choice(ALPHABET) * rng.choice([0, 1, 1, 1, 1, 3])
        yield "".join(characters) * rng.choice([1] * 50 + [1000])


def objects(template: dict[str, Any], count: int, *, seed: int, absurd: list[Any]) -> Iterator[dict[str, Any]]:
    """The template with up to three of its parts replaced, removed, renamed, doubled or moved."""
    rng = random.Random(seed)
    for _ in range(count):
        broken = copy.deepcopy(template)
        for _ in range(rng.randint(1, 3)):
            _break(broken, absurd, rng)
        yield broken


def _break(thing: dict[str, Any], absurd: list[Any], rng: random.Random) -> None:
    holder, key = rng.choice(list(_slots(thing)))
    match rng.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(["", "x", str(key).upper(), str(key) * 100])] = holder.pop(key)
        case 2 if isinstance(holder, list):
            holder.extend([holder[key]] * rng.choice([1, 100]))
        case 3:
            elsewhere, there = rng.choice(list(_slots(thing)))
            holder[key] = copy.deepcopy(elsewhere[there])
        case _:
            holder[key] = copy.deepcopy(rng.choice(absurd))


def _slots(thing: Any) -> Iterator[Slot]:
    """Every place below the top that holds something: its holder and its key."""
    if isinstance(thing, dict | list):
        for key, value in thing.items() if isinstance(thing, dict) else enumerate(thing):
            yield thing, key
            yield from _slots(value)


def garbled(raw: bytes, count: int, *, seed: int) -> Iterator[bytes]:
    """The bytes truncated, overwritten, nested or with a piece repeated."""
    rng = random.Random(seed)
    for _ in range(count):
        start, end = sorted(rng.choices(range(len(raw)), k=2))
        piece = raw[start:end]
        noise = rng.choice(
            [b"", rng.randbytes(3), b"null", b"NaN", b"9" * 5000, b"[" * 2000, b'"\xff"', piece, piece * 3]
        )
        yield rng.choice([raw[:start], raw[:start] + noise + raw[start:], raw[:start] + noise + raw[end:]])
