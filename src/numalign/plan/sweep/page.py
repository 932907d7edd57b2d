"""Writes what a sweep found: CSV, Parquet where pyarrow is installed, and one page with plots where matplotlib is.

`numalign plan sweep` calls `write`. Equal results give equal files."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from numalign.api.errors import BadObject
from numalign.plan.sweep import grid, runner
from numalign.plan.sweep.runner import FinishedRun

TABLE, PARQUET, PAGE = "results.csv", "results.parquet", "index.html"
WIDTH, HEIGHT_PER_POINT, HEIGHT = 8.0, 0.3, 0.9
PLOTTED: Final = "svg"
STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse}td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ccc}"
    "td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}"
)


def write(folder: Path, rows: Sequence[FinishedRun], table: str) -> list[str]:
    """The names of the files. `table`: the rows as CSV."""
    try:
        (folder / TABLE).write_text(table + "\n")
        made = [TABLE]
        if find_spec("pyarrow") is not None:
            _parquet(folder / PARQUET, rows)
            made.append(PARQUET)
        if find_spec("matplotlib") is not None:
            (folder / PAGE).write_text(page(rows))
            made.append(PAGE)
    except OSError as problem:
        raise BadObject("Folder", str(folder), "", f"cannot be written: {problem.strerror}") from None
    return made


def missing() -> list[str]:
    """What is not installed and would write more."""
    return [name for name in ("matplotlib", "pyarrow") if find_spec(name) is None]


def _parquet(path: Path, rows: Sequence[FinishedRun]) -> None:
    import pyarrow
    from pyarrow import parquet

    listed = runner.lines(rows)
    columns = list(dict.fromkeys(column for line in listed for column in line))
    parquet.write_table(pyarrow.table({column: [line.get(column) for line in listed] for column in columns}), str(path))


Means = Mapping[str, list[float]]
"""By point, the numbers of all seeds."""


def figures(rows: Sequence[FinishedRun]) -> dict[str, dict[str, list[float]]]:
    """By figure and point, the numbers of all seeds; figures that are equal everywhere are left out."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        for name, number in runner.flat(row.figures).items() if row.figures is not None else ():
            found.setdefault(name, {}).setdefault(grid.label(row.point), []).append(float(number))
    return {
        name: by_point
        for name, by_point in found.items()
        if len({number for numbers in by_point.values() for number in numbers}) > 1
    }


def page(rows: Sequence[FinishedRun]) -> str:
    parts = ["<!doctype html>", '<html lang="en">', '<meta charset="utf-8">', "<title>numalign plan sweep</title>"]
    parts.append(f"<style>{STYLE}</style><h1>numalign plan sweep</h1>")
    shown = figures(rows)
    seeds = len({row.seed for row in rows})
    parts.append(f"<p>{len(rows):,} runs, {seeds:,} seeds. Bars show the mean, lines the least and the most.</p>")
    if not shown:
        parts.append("<p>All runs gave the same figures.</p>")
    for name, by_point in shown.items():
        parts.append(f"<h2>{html.escape(name)}</h2>{_plot(name, by_point)}{_table(by_point)}")
    problems = [row for row in rows if row.problem]
    if problems:
        listed = "".join(
            f"<li>{html.escape(grid.label(row.point))}: {html.escape(row.problem)}</li>" for row in problems
        )
        parts.append(f"<h2>Runs without figures</h2><ul>{listed}</ul>")
    return "\n".join([*parts, "</html>", ""])


def _table(by_point: Means) -> str:
    lines = "".join(
        f"<tr><td>{html.escape(point)}</td><td>{fmean(numbers):,.2f}</td>"
        f"<td>{min(numbers):,g}</td><td>{max(numbers):,g}</td></tr>"
        for point, numbers in by_point.items()
    )
    return f"<table><tr><th></th><th>mean</th><th>least</th><th>most</th></tr>{lines}</table>"


def _plot(name: str, by_point: Means) -> str:
    """An SVG image, as text that belongs into a page."""
    import matplotlib
    from matplotlib.figure import Figure

    # Texts stay texts, and identifiers do not depend on chance.
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure: Any = Figure(figsize=(WIDTH, HEIGHT + HEIGHT_PER_POINT * len(by_point)), layout="constrained")
        axes = figure.subplots()
        labels, means = list(by_point), [fmean(numbers) for numbers in by_point.values()]
        low = [mean - min(numbers) for mean, numbers in zip(means, by_point.values(), strict=True)]
        high = [max(numbers) - mean for mean, numbers in zip(means, by_point.values(), strict=True)]
        axes.barh(labels, means, xerr=[low, high], color="#4477aa", ecolor="#222222", capsize=3)
        axes.invert_yaxis()
        axes.set_xlabel(name)
        written = io.StringIO()
        figure.savefig(written, format=PLOTTED, metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    return text[text.index("<svg") :]
