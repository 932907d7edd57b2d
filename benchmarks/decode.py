"""How long does a pod take from bytes to objects, beside the official Python client?  Goal: 50 times quicker.

Both read a list of 2,000 pods of 7 kB, as it comes from the API server, with the garbage collector on, as it is in
any program: ours into the structs of `numalign.api`, which carry what a scheduler looks at, theirs into full models.
Cost grows with the number of pods; for theirs a little faster, since the collector walks over all that is there."""

import time
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from benchmarks import _pods, table
from numalign.kube import lists
from numalign.kube.resources import PODS

BYTES_PER_POD: Final = 7_000
PODS_READ: Final = 2_000
GOAL: Final = 50.0


def rows() -> Iterator[table.Row]:
    from kubernetes import client

    official, raw = client.ApiClient(), listed(PODS_READ)
    theirs = raw.decode()
    yield table.Row(
        name="decode: a pod of 7 kB, beside the official client",
        ours=seconds(lambda: lists.page(PODS, raw)) / PODS_READ * 1e6,
        peer=seconds(lambda: official.deserialize(theirs, "V1PodList", "application/json"), runs=1) / PODS_READ * 1e6,
        unit="us",
        goal=GOAL,
    )


def seconds(read: Callable[[], object], runs: int = 5) -> float:
    """The best of a few, collections included."""
    return min(_seconds(read) for _ in range(runs))


def _seconds(read: Callable[[], object]) -> float:
    started = time.perf_counter()
    read()
    return time.perf_counter() - started


def listed(count: int) -> bytes:
    items = [_pods.pod(number, BYTES_PER_POD) for number in range(count)]
    return msgspec.json.encode(
        {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}
    )
