"""The start-up taint: keeps every scheduler off a new node until the node's first report is published.

A node group registers its nodes with the taint `numalign.io/no-report:NoSchedule` (the kubelet's `registerWithTaints`),
and `cycle` removes it after a report was published. Schedulers that do not know topology reports then wait, too. The
agent needs the right to patch its Node for that, so an option has to ask for it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from numalign.api.nrt import publishers
from numalign.api.objects.node import Node

KEY: Final = publishers.STARTUP_TAINT


def removal(node: Node) -> dict[str, Any] | None:
    """The merge patch that takes the taint off the Node as it was read; None: it does not have the taint.

    The list of taints is written as a whole: with another resource version the API server refuses the patch."""
    left = [taint for taint in node.spec.taints if taint.key != KEY]
    if len(left) == len(node.spec.taints):
        return None
    return {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": msgspec.to_builtins(left) or None},
    }
