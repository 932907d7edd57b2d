"""How an embedded cluster is described to a user who has just started or listed it.

`numalign cluster` and `numalign demo --keep` print these lines: what runs, which schedulers serve and how a pod gets to
each, what to type next, and the line that sets KUBECONFIG."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numalign.simulator.registry import RunningCluster, ServedScheduler

DEFAULT = "default-scheduler"
NONE = """schedulers: none; pods wait until you start one, for example `numalign scheduler run`"""


def description(found: RunningCluster) -> str:
    """One line about the cluster, and one for each scheduler."""
    lines = [f"{found.name}: {found.words}, at {found.url}"]
    width = max((len(each.name) for each in found.schedulers), default=0)
    lines += [f"  {each.name:<{width}}  sees {each.sees}; {_use(each)}" for each in found.schedulers]
    if not found.schedulers:
        lines.append(f"  {NONE}")
    return "\n".join(lines)


def next_steps(found: RunningCluster) -> str:
    names = [each.name for each in found.schedulers]
    lines = ["Next:", "  kubectl get nodes", "  numalign topology"]
    if any(each.pages for each in found.schedulers):
        lines.append("  numalign scheduler state")
    elif names:
        lines.append("  numalign scheduler run          # numalign does not run yet: this starts it")
    return "\n".join([*lines, f"  numalign cluster down {found.name}"])


def export(found: RunningCluster) -> str:
    """The line for `eval`."""
    return f"export KUBECONFIG={shlex.quote(found.kubeconfig)}"


def _use(scheduler: ServedScheduler) -> str:
    if scheduler.name == DEFAULT:
        return "serves pods that name no scheduler"
    return f"serves pods with `schedulerName: {scheduler.name}`"
