"""The start-up taint: keeps every scheduler off a new node until the node's first report is published.

A node group registers its nodes with the taint `numalign.io/no-report:NoSchedule` (the kubelet's `registerWithTaints`),
and `cycle` removes it after a report was published. Schedulers that do not know topology reports then wait, too. The
agent needs the right to patch its Node for that, so an option has to ask for it."""

from __future__ import annotations

from typing import Any, Final

from numalign.api.nrt import publishers
from numalign.api.objects import node as nodes
from numalign.api.objects.node import Node

KEY: Final = publishers.STARTUP_TAINT


def removal(node: Node) -> dict[str, Any] | None:
    """The merge patch that removes the taint; None: the Node does not have it."""
    return nodes.without_taint(node, KEY)
