"""What is left to ask of a node whose answer is known: whether it is final, and what it would be under another policy.

`scheduler.explanations` makes sure of nodes that seem to fit, `scheduler.advice` looks for what would help. Questions
with pods gone are `whatif`'s. Nothing is charged; the reference flavour has one answer, its plugin's."""

from __future__ import annotations

from msgspec import structs

from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects.pod import Pod
from numalign.placement.columns.columns import NOBODY, UNREPORTED
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import LAST_RESORT
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour


def is_final(engine: Engine, shape: Shape, row: int) -> bool:
    """Whether a row whose code says that it fits surely does: nobody's turn is open there, and amounts decide."""
    columns, flavour = engine.columns, engine.flavour
    if not isinstance(flavour, ExactFlavour) or columns.kind[row] == UNREPORTED:
        return True
    code = int(flavour.verdicts.table(shape).codes[row])
    return bool(code > LAST_RESORT and not columns.loose[row] and columns.tenure[row] == NOBODY)


def admits_under(engine: Engine, pod: Pod, shape: Shape, number: int, policy: Policy) -> bool:
    """Whether the node would admit the pod with this policy, and no other pod on it."""
    flavour = engine.flavour
    if not isinstance(flavour, ExactFlavour) or engine.columns.kind[number] == UNREPORTED:
        return False
    with flavour.mirror.ledger.without(tenants(engine, number)):
        row = flavour.mirror.row(number)
    facts = structs.replace(row.facts, rules=structs.replace(row.facts.rules, policy=policy))
    return flavour.committer.place(pod, shape, structs.replace(row, facts=facts)) is not None


def pending(engine: Engine, number: int) -> frozenset[str]:
    """Pods on their way to the node, by uid."""
    if not isinstance(engine.flavour, ExactFlavour):
        return frozenset()
    book = engine.flavour.mirror.ledger.book(engine.columns.names[number])
    return frozenset(book.pending) if book is not None else frozenset()


def tenants(engine: Engine, number: int) -> frozenset[str]:
    """Every pod of the node that the books know, by uid."""
    if not isinstance(engine.flavour, ExactFlavour):
        return frozenset()
    book = engine.flavour.mirror.ledger.book(engine.columns.names[number])
    return frozenset(book.records) if book is not None else frozenset()
