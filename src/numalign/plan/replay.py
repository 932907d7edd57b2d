"""Replays lists of a trace under policies, with seeds: the runs of one study, on all cores.

`numalign plan replay` calls `runs`. A run depends on its case alone, so that results are the same on any number of
cores. The clock is an argument, and so are kubelets that every binding is put to."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Literal

from msgspec import Struct

from numalign.api.errors import BadObject, echo
from numalign.api.nrt.topologymanager import Policy
from numalign.placement.capacity.contenders import CONTENDERS
from numalign.plan import agreement, onezone, trace, zoned
from numalign.plan.agreement import Agreement, Kubelets, PredictedBinding
from numalign.plan.trace import Trace
from numalign.plan.zoned import Setup

Clock = Callable[[], float]
Requests = Literal["listed", "guaranteed"]


class Case(Struct, frozen=True, kw_only=True):
    """What is replayed."""

    list: str
    policy: str
    zones: int = 1
    seed: int
    whole_gpus: bool = False
    """Without the pods that share a GPU, on machines with kubelets; always so where there are several zones."""
    topology_policy: Policy = "restricted"
    requests: Requests = "listed"
    """`guaranteed`: with limits, and whole CPUs."""

    @property
    def has_kubelets(self) -> bool:
        return self.whole_gpus or self.zones > 1


class Run(Struct, frozen=True, kw_only=True):
    """A case with what came of it; amounts in percent of all GPUs unless their names say otherwise."""

    list: str
    policy: str
    zones: int
    seed: int
    allocated_100: float
    allocated_130: float
    unallocated_gpus: float
    fragmented_130: float
    rejected: int
    """Times that a pod was bound and that a kubelet then refused it."""
    rejected_per_1000: float
    """Of all pods."""
    stranded_gpus: float
    """Free GPUs of nodes that have room for a waiting shape by their totals, and for none in their zones."""
    free_sockets: int
    """Zones of which every GPU is free, of machines with several zones."""
    dropped: int
    """Pods that found no node."""
    pods: int
    topology_policy: str
    requests: str
    seconds: float
    """Without those of kubelets."""
    kubelets: Agreement | None = None
    """What kubelets did that every binding was put to; None: there were none."""


def check(case: Case, *, by_kubelets: bool = False) -> None:
    """BadObject if nothing can replay the case. `by_kubelets`: kubelets are asked."""
    if by_kubelets and not case.has_kubelets:
        why = "GPUs that pods share are of no kubelet; give --whole-gpus, or --zones 2"
        raise BadObject("plan replay", case.list, "--kubelets", why)
    if case.policy not in policies(case):
        what, known = "whole GPUs" if case.has_kubelets else "one zone", ", ".join(policies(case))
        why = f"{echo(case.policy)} is unknown for {what}; write one of {known}"
        raise BadObject("plan replay", case.policy, "--policy", why)


def policies(case: Case) -> tuple[str, ...]:
    """Those that can replay such a case."""
    return tuple(CONTENDERS if case.has_kubelets else onezone.POLICIES)


def runs(
    folder: Path, cases: Sequence[Case], workers: int, clock: Clock, kubelets: Kubelets | None = None
) -> Iterator[Run]:
    """One run after the other, in the order of the cases."""
    for name in dict.fromkeys(case.list for case in cases):
        _trace(folder, name)
    if min(workers, len(cases)) < 2:
        for case in cases:
            yield run(folder, case, clock, kubelets)
        return
    # Forked children would inherit locks of threads that do not exist in them.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(cases)), context) as pool:
        yield from pool.map(run, repeat(folder), cases, repeat(clock), repeat(kubelets))


def run(folder: Path, case: Case, clock: Clock, kubelets: Kubelets | None = None) -> Run:
    """One run. The seconds count from the trace in memory to the result."""
    check(case, by_kubelets=kubelets is not None)
    known, bindings = _trace(folder, case.list), list[PredictedBinding]()
    start = clock()
    if case.has_kubelets:
        setup = Setup(zones=case.zones, policy=case.topology_policy, pinned=case.requests == "guaranteed")
        found = zoned.pack(known, case.policy, case.seed, setup, bindings.append if kubelets is not None else None)
    else:
        found = onezone.pack(known, case.policy, case.seed)
    seconds = clock() - start
    return Run(
        list=case.list,
        policy=case.policy,
        zones=case.zones,
        seed=case.seed,
        allocated_100=round(found.allocated_100, 4),
        allocated_130=round(found.allocated_130, 4),
        unallocated_gpus=round(found.unallocated_gpus, 2),
        fragmented_130=round(found.fragmented_130, 4),
        rejected=found.rejected,
        rejected_per_1000=round(1000 * found.rejected / max(1, found.pods), 3),
        stranded_gpus=found.stranded_gpus,
        free_sockets=found.free_sockets,
        dropped=found.dropped,
        pods=found.pods,
        topology_policy=case.topology_policy if case.has_kubelets else "",
        requests=case.requests if case.has_kubelets else "listed",
        seconds=round(seconds, 3),
        kubelets=_asked(kubelets, known, case, bindings) if kubelets is not None else None,
    )


def _asked(kubelets: Kubelets, known: Trace, case: Case, bindings: Sequence[PredictedBinding]) -> Agreement:
    return agreement.compare(bindings, kubelets(known.nodes, case.zones, case.topology_policy, bindings))


@lru_cache(maxsize=32)
def _trace(folder: Path, name: str) -> Trace:
    return trace.read(folder, name)
