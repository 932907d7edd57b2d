"""Reads a trace in the format of `openb` (cluster-trace-gpu-v2023): a list of nodes, and lists of pods by name.

`replay` calls `read`. A file is CSV text, plain or compressed by xz. Whatever cannot be used is a BadObject that names
the file, the line and the column."""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.api.errors import BadObject, clipped, echo

NODES: Final = "openb_node_list_gpu_node.csv"
PODS: Final = "openb_pod_list_{}.csv"
SUFFIXES: Final = "", ".xz"
MOST_BYTES: Final = 64 << 20
LARGEST: Final = 1 << 40
"""More than any amount in thousandths of a CPU or in MiB that a node may have."""
LONGEST_NUMBER: Final = 20
"""Digits, zeros at the front included."""
MOST_GPUS: Final = 16
MOST_MODELS: Final = 60
WHOLE: Final = 1000
"""Thousandths of a GPU."""
NODE_COLUMNS: Final = "sn", "cpu_milli", "memory_mib", "gpu", "model"
POD_COLUMNS: Final = "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"


class TraceNode(Struct, frozen=True):
    """A machine; memory in MiB."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class TracePod(Struct, frozen=True):
    """A pod; memory in MiB, `gpu_milli` for each GPU."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int = 0
    models: tuple[str, ...] = ()
    """GPU models that will do; empty: any."""

    @property
    def is_share(self) -> bool:
        """Whether the pod asks for a part of one GPU."""
        return self.gpus == 1 and self.gpu_milli < WHOLE

    @property
    def total_gpu_milli(self) -> int:
        return self.gpus * self.gpu_milli


class Trace(Struct, frozen=True):
    """The nodes, and one of the pod lists, in the order of the files."""

    name: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]

    @property
    def gpus(self) -> int:
        return sum(node.gpus for node in self.nodes)

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(sorted({node.model for node in self.nodes}))


def read(folder: Path, name: str) -> Trace:
    """The nodes of the folder with the pod list of this name."""
    nodes = tuple(_nodes(_content(folder, NODES)))
    pods = tuple(_pods(_content(folder, PODS.format(name), lists(folder)), {node.model for node in nodes}))
    if not sum(node.gpus for node in nodes):
        raise BadObject("File", NODES, "gpu", "no node has a GPU; the replay measures in percent of GPUs")
    return Trace(name, nodes, pods)


def lists(folder: Path) -> list[str]:
    """The names of the pod lists of a folder."""
    before, after = PODS.split("{}")
    found = {each.name.removesuffix(".xz") for each in folder.glob(f"{before}*{after}*") if each.is_file()}
    return sorted(name.removeprefix(before).removesuffix(after) for name in found if name.endswith(after))


def _content(folder: Path, name: str, known: Collection[str] = ()) -> tuple[str, str]:
    """The name of the file, and its text."""
    for suffix in SUFFIXES:
        path = folder / (name + suffix)
        if path.is_file():
            return path.name, _text(path)
    remedy = f"; the folder has the pod lists {', '.join(known)}" if known else ""
    raise BadObject("Folder", str(folder), "", f"has neither {name} nor {name}.xz{remedy}")


def _text(path: Path) -> str:
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError) as problem:
        why = getattr(problem, "strerror", None) or str(problem)
        raise BadObject("File", str(path), "", f"cannot be read: {why}") from None
    if len(raw) > MOST_BYTES:
        raise BadObject("File", str(path), "", f"larger than {MOST_BYTES >> 20} MiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise BadObject("File", str(path), "", f"byte {problem.start} is not UTF-8 text; write CSV") from None


class _TraceLine(Struct, frozen=True):
    """A line of a CSV file, which reads its fields and names itself in errors."""

    file: str
    number: int
    fields: Mapping[str, str]

    def wrong(self, column: str, why: str) -> BadObject:
        return BadObject("File", self.file, f"line {self.number}, {column}", why)

    def text(self, column: str) -> str:
        return (self.fields.get(column) or "").strip()

    def amount(self, column: str, most: int = LARGEST) -> int:
        written = self.text(column)
        if not written.isascii() or not written.removeprefix("-").isdigit():
            raise self.wrong(column, f"{echo(written)} is not a whole number; write one of 0 to {most}")
        if len(written) > LONGEST_NUMBER or not 0 <= int(written) <= most:
            raise self.wrong(column, f"{echo(written)} is out of range; write a number of 0 to {most}")
        return int(written)


def _lines(file: str, text: str, wanted: tuple[str, ...]) -> Iterator[_TraceLine]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        there = reader.fieldnames or ()
        missing = [column for column in wanted if column not in there]
        if missing:
            why = f"the columns {', '.join(missing)} are missing; the first line has to name {', '.join(wanted)}"
            raise BadObject("File", file, "line 1", why)
        seen: dict[str, int] = {}
        for fields in reader:
            line = _TraceLine(file, reader.line_num, fields)
            name = line.text(wanted[0])
            if not name:
                raise line.wrong(wanted[0], "is empty; write a name")
            if name in seen:
                raise line.wrong(wanted[0], f"{echo(name)} is also the name of line {seen[name]}; names are unique")
            seen[name] = line.number
            yield line
        if not seen:
            raise BadObject("File", file, "", "has no line after the names of the columns")
    except csv.Error as problem:
        raise BadObject("File", file, f"line {reader.line_num}", f"is not CSV: {problem}") from None


def _nodes(source: tuple[str, str]) -> Iterator[TraceNode]:
    models: set[str] = set()
    for line in _lines(*source, NODE_COLUMNS):
        gpus, model = line.amount("gpu", MOST_GPUS), line.text("model")
        if gpus and not model:
            raise line.wrong("model", f"is empty on a node with {gpus} GPUs; write the model of its GPUs")
        models.add(model)
        if len(models) > MOST_MODELS:
            raise line.wrong("model", f"{echo(model)} is one model too many; at most {MOST_MODELS} are possible")
        yield TraceNode(line.text("sn"), line.amount("cpu_milli"), line.amount("memory_mib"), gpus, model)


def _pods(source: tuple[str, str], models: Collection[str]) -> Iterator[TracePod]:
    for line in _lines(*source, POD_COLUMNS):
        gpus, milli = line.amount("num_gpu", MOST_GPUS), line.amount("gpu_milli", WHOLE)
        if gpus == 0 and milli:
            raise line.wrong("gpu_milli", f"{milli} on a pod without GPUs; write 0, or 1 as num_gpu")
        if gpus and not milli:
            raise line.wrong("gpu_milli", f"0 on a pod with num_gpu {gpus}; write {WHOLE}, or 0 as num_gpu")
        if gpus > 1 and milli != WHOLE:
            raise line.wrong("gpu_milli", f"{milli} on a pod with {gpus} GPUs; only a single GPU can be shared")
        wanted = tuple(each for each in line.text("gpu_spec").split("|") if each)
        for model in wanted:
            if model not in models:
                why = f"no node has the model {echo(model)}; the nodes have {', '.join(map(clipped, sorted(models)))}"
                raise line.wrong("gpu_spec", why)
        yield TracePod(
            line.text("name"), line.amount("cpu_milli"), line.amount("memory_mib"), gpus, milli, wanted if gpus else ()
        )
