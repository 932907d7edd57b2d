"""A decision made again, for people and as values: then and now, the best nodes, and one node in depth.

`schedulerlook` hands in what `scheduler.repeating` found. One node is told with the words and tables of `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from numalign.cli import drawing, output
from numalign.cli.admit import matrix
from numalign.cli.drawing import INDENT, Page
from numalign.cli.explain import answer as explained
from numalign.cli.scheduler import draw
from numalign.scheduler.choose.scoring import NodeScore
from numalign.scheduler.explain.replay import NodeReplay, ReplayResult


def plain(again: ReplayResult) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(again, on_node=None), str_keys=True)
    return told | {"on_node": _plain_node(again.on_node) if again.on_node is not None else None}


def drawn(again: ReplayResult) -> str:
    page, grid = Page(), drawing.labelled()
    grid.add_row("pod", output.printable(again.pod))
    grid.add_row("now", _outcome(again.node, again.zones, again.message))
    if again.before is not None:
        grid.add_row("then", _outcome(again.before.node, again.before.zones, again.before.message))
        grid.add_row("", "the same" if again.agrees else "not the same: the cluster has changed since")
    else:
        grid.add_row("then", "not remembered")
    page.add(grid)
    if again.on_node is not None:
        page.add()
        _on_node(page, again.on_node)
    elif again.best:
        page.add()
        _ranked(page, again.best)
    return page.text()


def _plain_node(found: NodeReplay) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins({"answer": _answer(found), "ranked": found.ranked})
    return told | {"occupied": _occupied(found)}


def _answer(found: NodeReplay) -> explained.NodeTold:
    return explained.answer(found.node, found.answer) if found.answer is not None else explained.fitting(found.node)


def _occupied(found: NodeReplay) -> dict[str, Any]:
    """As the scheduler's own page tells a node."""
    seen = msgspec.to_builtins(found.occupied, str_keys=True) if found.occupied is not None else {}
    return {"name": found.node, "isThere": True} | seen


def _on_node(page: Page, found: NodeReplay) -> None:
    answer = _answer(found)
    page.add(output.printable(f"{found.node} {f'refuses: {answer.why}' if answer.why else 'takes the pod'}"))
    if answer.lacks:
        page.add(matrix.lacks(page, answer.lacks), indent=INDENT)
    if found.ranked is not None:
        page.add()
        _ranked(page, [found.ranked])
    page.add()
    draw.node(page, _occupied(found))


def _outcome(node: str, zones: str, message: str) -> str:
    return output.printable(node + (f", {zones}" if zones else "") if node else message)


def _ranked(page: Page, ranked: Sequence[NodeScore]) -> None:
    table = page.table("NODE", "TOTAL", *ranked[0].plugins)
    for each in ranked:
        table.add_row(each.node, str(each.total), *(str(each.plugins.get(name, 0)) for name in ranked[0].plugins))
    if page.fits(table):
        return page.add(table)
    for each in ranked:
        parts = ", ".join(f"{name} {score}" for name, score in each.plugins.items() if score)
        page.add(f"{each.node}: {each.total} = {parts}")
