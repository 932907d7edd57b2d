"""Runs the study of docs/develop/packing.md, and writes its tables and plots: `make packing TRACE=<folder>`.

The folder holds the lists of the trace. Runs that a file has (`--runs`) are not repeated, so that an interrupted study
goes on where it was. The plots need matplotlib, and only this tool does. The same runs give the same bytes."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from numalign.api.nrt.topologymanager import Policy
from numalign.plan import replay
from numalign.plan.replay import Case, Requests, Run

DOCS: Final = Path(__file__).resolve().parents[1] / "docs" / "develop"
PAGE: Final = DOCS / "packing.md"
BEGIN, END = "<!-- study: written by tools/packing.py -->", "<!-- end of the study -->"
LISTS: Final = ("default", "multigpu50")
SEEDS: Final = range(42, 52)
ALIGNED: Final = ("least-blind", "most-blind", "fgd", "fgd-filter", "numalign-least", "numalign-most")
ONE_ZONE: Final = "fgd, one zone"


class Part(Struct, frozen=True, kw_only=True):
    """Cases that share a table."""

    title: str
    requests: Requests
    topology_policy: Policy
    policies: tuple[str, ...]
    lists: tuple[str, ...] = LISTS
    seeds: range = SEEDS


PARTS: Final = (
    Part(
        title="CPUs and GPUs aligned (`guaranteed`), restricted",
        requests="guaranteed",
        topology_policy="restricted",
        policies=(*ALIGNED, "zone-fgd"),
    ),
    Part(
        title="GPUs aligned (`listed`), restricted",
        requests="listed",
        topology_policy="restricted",
        policies=(*ALIGNED, "zone-fgd"),
    ),
    Part(
        title="CPUs and GPUs aligned (`guaranteed`), single-numa-node, seeds 42 to 44",
        requests="guaranteed",
        topology_policy="single-numa-node",
        policies=("least-blind", "go-plugin", "fgd-filter", "numalign-least", "zone-fgd"),
        lists=("default",),
        seeds=range(42, 45),
    ),
)


def cases(part: Part) -> Iterator[Case]:
    for name in part.lists:
        for seed in part.seeds:
            like = Case(list=name, policy="fgd", seed=seed, requests=part.requests, whole_gpus=True)
            if part.topology_policy == "restricted":
                yield like
            for policy in part.policies:
                yield structs.replace(like, policy=policy, zones=2, topology_policy=part.topology_policy)


def key(run: Case | Run) -> tuple[Any, ...]:
    return run.list, run.policy, run.zones, run.seed, run.topology_policy, run.requests


def known(files: Iterable[Path]) -> dict[tuple[Any, ...], Run]:
    runs = [run for file in files if file.exists() for run in msgspec.json.decode(file.read_bytes(), type=list[Run])]
    return {key(run): run for run in runs}


def studied(folder: Path, store: Path, others: Sequence[Path]) -> dict[tuple[Any, ...], Run]:
    """All runs; each new one is kept at once."""
    found = known([*others, store])
    wanted = [case for part in PARTS for case in cases(part) if key(case) not in found]
    start = time.monotonic()
    for number, run in enumerate(replay.runs(folder, wanted, os.cpu_count() or 1, time.process_time), 1):
        found[key(run)] = run
        store.write_bytes(msgspec.json.encode(list(found.values())))
        left = (time.monotonic() - start) / number * (len(wanted) - number)
        print(f"{number:,} of {len(wanted):,} runs, about {left:,.0f} s left", file=sys.stderr)
    return found


def table(part: Part, found: dict[tuple[Any, ...], Run]) -> Iterator[str]:
    yield f"**{part.title}**"
    yield ""
    yield "| list | policy | at 100 % | at 130 % | sd | rejections | stranded GPUs | free sockets |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in part.lists:
        own: dict[str, list[Run]] = {}
        for case in cases(part):
            if case.list == name:
                own.setdefault(f"`{case.policy}`" if case.zones > 1 else ONE_ZONE, []).append(found[key(case)])
        for policy, runs in own.items():
            at_100, at_130 = ([getattr(run, field) for run in runs] for field in ("allocated_100", "allocated_130"))
            yield (
                f"| {name} | {policy} | {fmean(at_100):.2f} | {fmean(at_130):.2f} | {stdev(at_130):.2f} "
                f"| {fmean(run.rejected_per_1000 for run in runs):,.0f} "
                f"| {fmean(run.stranded_gpus for run in runs):,.0f} "
                f"| {'' if policy == ONE_ZONE else f'{fmean(run.free_sockets for run in runs):,.0f}'} |"
            )
    yield ""


def plot(part: Part, found: dict[tuple[Any, ...], Run], file: Path) -> None:
    """Bars of what is allocated at 130 % of demand."""
    importlib.import_module("matplotlib").rcParams["svg.hashsalt"] = "numalign"
    figure = importlib.import_module("matplotlib.figure").Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots(1, len(part.lists), sharey=True, squeeze=False)[0]
    for place, name in zip(axes, part.lists, strict=True):
        names = list(part.policies)
        mine = [found[key(case)] for case in cases(part) if case.list == name and case.zones > 1]
        runs = [[run for run in mine if run.policy == each] for each in names]
        heights = [fmean(run.allocated_130 for run in own) for own in runs]
        place.barh(names, heights, xerr=[stdev(run.allocated_130 for run in own) for own in runs], color="#4878a8")
        place.set_title(name)
        place.set_xlabel("allocated GPUs, %")
        place.set_xlim(0, 100)
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    file.write_text("".join(f"{line.rstrip()}\n" for line in file.read_text().splitlines()))


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the tables and plots of docs/develop/packing.md.")
    parser.add_argument("trace", type=Path, help="the folder with the lists of nodes and pods")
    parser.add_argument("--runs", type=Path, default=Path("packing-runs.json"), help="where runs are kept")
    parser.add_argument("--known", type=Path, action="append", default=[], help="runs of `plan replay -o json`")
    given = parser.parse_args()
    found = studied(given.trace, given.runs, given.known)
    lines = [BEGIN, ""]
    (DOCS / "images").mkdir(exist_ok=True)
    for part in PARTS:
        image = f"images/packing-{part.requests}-{part.topology_policy}.svg"
        plot(part, found, DOCS / image)
        lines += [*table(part, found), f"![Allocated GPUs at 130 % of demand]({image})", ""]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + "\n".join([*lines, END]) + rest.partition(END)[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
