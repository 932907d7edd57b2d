"""How many cases per second does the model answer, beside the real kubelet's managers?

The same made-up cases of every family go to the oracle program of the newest minor, with one worker and one run each,
and to the model in this process, both from JSON to JSON in the same go. Seconds are CPU time of the two processes, so
that it does not matter what else the machine does. The real code is Go and walks the product of all hint lists; the
model is Python and does not. So small cases only have to stay within reach, which the goal says, and at 8 zones x 4
resources ours has to win. Without Go there is nobody to ask, and this says so."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from benchmarks import table
from numalign.kubelet.refusals import Undecided
from numalign.lab import build
from numalign.oracle import sources
from numalign.oracle.harness import ask as asking
from numalign.oracle.harness import divergence
from numalign.oracle.harness.ask import OracleProgram
from numalign.oracle.kubelet import vectors
from numalign.oracle.kubelet.family import CaseOrigin, Family
from numalign.oracle.kubelet.generate import cases as generated

Case = dict[str, Any]

ALONE = ("-workers", "1", *asking.ONCE, "-limit", "60s")
DRAWN = {
    "tm_merge": 400,
    "cpu_static": 200,
    "cpu_distribute": 200,
    "mem_static": 100,
    "device_hints": 100,
    "sequence": 40,
    "sequence_podlevel": 40,
}
WITHIN_REACH = 0.2
"""The least share of the real code's speed for cases of everyday size."""

OFTEN = 10
"""How many times in a row a single large case is asked."""

ZONES = list(range(8))
GIB = 1 << 30
RUNS = 3


def rows() -> Iterator[table.Row]:
    if not build.found():
        print(f"oracles: left out, the real kubelet cannot be asked; {build.ADVICE}", file=sys.stderr)
        return
    source = sources.kubelet("kubelet")
    with OracleProgram(source.program(), ALONE) as program:
        ask = partial(row, program, CaseOrigin({}, source.minor))
        for name, number in DRAWN.items():
            yield ask(name, name, [made(name, each) for each in range(number)], WITHIN_REACH)
        for title, (name, large) in LARGE.items():
            yield ask(name, f"{name}, {title}", [large] * OFTEN, 1.0)


def made(name: str, number: int) -> Case:
    return generated.make(Random(f"bench/{number}"), name, f"{generated.PREFIXES[name]}{number}")


def row(
    program: OracleProgram, origin: CaseOrigin, family: str, title: str, cases: Sequence[Case], goal: float
) -> table.Row:
    known = next(each for each in vectors.FAMILIES if each.name == family)
    kept = [case for case in cases if is_answered(program, known, origin, case)]
    lines = [msgspec.json.encode(case) for case in kept]
    return table.Row(
        name=f"oracles: {title}",
        ours=len(kept)
        / spent(lambda: [answered(known, origin, line) for line in lines], time.CLOCK_PROCESS_CPUTIME_ID),
        peer=len(kept) / spent(lambda: program.ask([(family, case) for case in kept]), worker_clock(program)),
        unit="cases/s",
        goal=goal,
        higher_is_better=True,
    )


def spent(call: Callable[[], object], clock: int) -> float:
    """Seconds on this clock for the quickest of a few calls."""
    return min(timed(call, clock) for _ in range(RUNS))


def timed(call: Callable[[], object], clock: int) -> float:
    started = time.clock_gettime(clock)
    call()
    return time.clock_gettime(clock) - started


def worker_clock(program: OracleProgram) -> int:
    """The CPU clock of the process in which the real managers run: its number inverted, then "all threads"."""
    tasks = Path(f"/proc/{program.process.pid}/task").iterdir()
    (worker,) = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return ~worker << 3 | 2


def answered(family: Family, origin: CaseOrigin, line: bytes) -> bytes:
    return divergence.canonical(family.answer(msgspec.json.decode(line, type=family.case), origin))


def is_answered(program: OracleProgram, family: Family, origin: CaseOrigin, case: Case) -> bool:
    """By both sides: a case that one of them gives up on measures nothing."""
    with suppress(Undecided):
        answered(family, origin, msgspec.json.encode(case))
        return asking.is_answered(program.ask([(family.name, case)])[0])
    return False


def large_merge() -> Case:
    """Three resources that fit into any six zones and one that needs seven: 455,877 combinations."""
    sizes = {"cpu": 6, "memory": 6, "example.com/gpu": 6, "example.com/nic": 7}
    hints = {
        name: [{"mask": mask, "preferred": len(mask) == size} for mask in wide(size)] for name, size in sizes.items()
    }
    providers = [{name: offered} for name, offered in hints.items()]
    return {
        "id": "merge-large",
        "policy": "best-effort",
        "prefer_closest": False,
        "numa_nodes": ZONES,
        "distances": None,
        "providers": providers,
    }


def wide(fewest: int) -> list[tuple[int, ...]]:
    return [mask for size in range(fewest, len(ZONES) + 1) for mask in combinations(ZONES, size)]


def pod(more: dict[str, str]) -> Case:
    asked = {"cpu": "4", "memory": "4Gi", **more}
    return {"uid": "p0", "containers": [{"name": "c0", "requests": asked, "limits": asked}]}


def large_memory() -> Case:
    """Memory and three sizes of huge pages; hints are listed for every set of zones in which all of them fit."""
    pages = [{"page_size_kb": size, "num_pages": pages} for size, pages in ((64, 2048), (2048, 512), (1 << 20, 4))]
    return {
        "id": "mem-large",
        "nodes": [{"id": zone, "memory": 64 * GIB, "hugepages": pages} for zone in ZONES],
        "reserved": {str(zone): {"memory": GIB} for zone in ZONES},
        "pods": [pod({"hugepages-64Ki": "64Mi", "hugepages-2Mi": "512Mi", "hugepages-1Gi": "2Gi"})],
        "ops": [{"op": "hints", "pod": "p0", "container": "c0"}],
    }


def large_devices() -> Case:
    """Four kinds of devices, four of each in every zone."""
    kinds = [f"example.com/{kind}" for kind in "abcd"]
    return {
        "id": "dev-large",
        "numa_nodes": ZONES,
        "resources": {kind: {"preferred_allocation": True, "devices": devices(kind[-1])} for kind in kinds},
        "pods": [pod(dict.fromkeys(kinds, "2"))],
        "ops": [{"op": "hints", "pod": "p0", "container": "c0"}],
    }


def devices(kind: str) -> list[Case]:
    return [{"id": f"{kind}{number:02}", "healthy": True, "numa": [number // 4]} for number in range(4 * len(ZONES))]


def large_cpus() -> Case:
    """Hints for CPUs of a machine with 256 of them."""
    cores = [{"socket": core // 32, "uncore": None, "cpus": [core, core + 128]} for core in range(128)]
    zones = [{"id": zone, "distances": [10] * 8, "cores": cores[16 * zone : 16 * zone + 16]} for zone in ZONES]
    return {
        "id": "cpu-large",
        "topology": {"name": "large", "num_cpus": 256, "num_sockets": 4, "numa": zones},
        "options": {},
        "tm_policy": "best-effort",
        "num_reserved": 1,
        "reserved_cpus": "0",
        "default": "0-255",
        "assignments": {},
        "pod": pod({}),
        "steps": [{"container": "c0", "affinity": {"mask": [3], "preferred": True}}],
        "removals": [{"container": "c0"}],
    }


LARGE = {
    "8 zones x 4 resources": ("tm_merge", large_merge()),
    "8 zones x 4 kinds of devices": ("device_hints", large_devices()),
    "8 zones x 4 kinds of memory": ("mem_static", large_memory()),
    "8 zones x 32 CPUs": ("cpu_static", large_cpus()),
}
