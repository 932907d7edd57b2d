"""What a pod's annotations mean on a kind of node: allowed, allowed with a warning, or refused.

`evaluation` asks once per shape and kind of node, `reasons` says what came of it. The kubelet applies its own policy
and scope whatever a pod asks for, so a wish chooses among nodes and changes none (docs/use/intent.md). A pod that
names a scope and no strictness means it: the scope is required, any policy will do."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from numalign.api.attributes import directspec
from numalign.api.attributes.directspec import strictest
from numalign.api.attributes.intent import Intent
from numalign.kubelet.demand import Role
from numalign.placement.columns.directmachine import DirectTerms
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program

STRICT: Final = frozenset({"restricted", "single-numa-node"})
"""Policies under which a kubelet refuses a pod rather than misalign it."""

PENALTY: Final = 100
"""The whole range of scores: a node that does not keep a preference ranks behind every node that does."""


class Unkept(StrEnum):
    """Which part of a wish a node does not keep."""

    NO_REPORT = "no-report"
    POLICY = "policy-too-weak"
    SCOPE = "scope-differs"
    NOT_DIRECT = "needs-direct-mode"
    NOT_ENFORCED = "not-enforced"


class Judgement(Struct, frozen=True):
    """Whether a pod may go to such a node, and what its score loses there."""

    allowed: bool = True
    penalty: int = 0
    unkept: Unkept | None = None

    @property
    def reason(self) -> str:
        """The code of what is not kept; empty: everything is."""
        return self.unkept or ""


KEPT: Final = Judgement()


def judge(wish: Intent, rules: NodeRules | None, program: Program | None) -> Judgement:
    """`rules` and `program` None: the node has no report."""
    if rules is not None and rules.direct is not None:
        unkept = _unkept_directly(wish, rules.direct)
    else:
        unkept = _unkept_by_kubelet(wish, rules, program)
    if unkept is None:
        return KEPT
    if wish.strictness == "prefer":
        return Judgement(allowed=True, penalty=PENALTY, unkept=unkept)
    return Judgement(allowed=False, unkept=unkept)


def _unkept_directly(wish: Intent, terms: DirectTerms) -> Unkept | None:
    """In direct mode the pod has what it asks for, as far as the agent can enforce it."""
    if wish.direct.enforce_memory and "mems" not in terms.features:
        return Unkept.NOT_ENFORCED
    policy = strictest((wish.direct.policy or "none", terms.defaults.policy))
    is_weak = wish.strictness in ("require", "prefer") and policy not in STRICT
    return Unkept.POLICY if is_weak else None


def _unkept_by_kubelet(wish: Intent, rules: NodeRules | None, program: Program | None) -> Unkept | None:
    spec = wish.direct
    if spec.needs_direct:
        return Unkept.NOT_DIRECT
    if spec.policy not in (None, "none") and rules is None:
        return Unkept.NO_REPORT
    if rules is not None and directspec.STRICTNESS[rules.policy] < directspec.STRICTNESS[spec.policy or "none"]:
        return Unkept.POLICY
    if spec.scope is not None:
        # The newer annotation wins over the older one.
        wish = structs.replace(wish, scope=spec.scope)
    return None if wish.strictness == "none" else _unkept(wish, rules, program)


def _unkept(wish: Intent, rules: NodeRules | None, program: Program | None) -> Unkept | None:
    if wish.scope is None and wish.strictness is None:
        return None
    if rules is None or program is None:
        return Unkept.NO_REPORT
    if wish.strictness is not None and rules.policy not in STRICT:
        return Unkept.POLICY
    return None if _keeps_scope(wish, rules, program) else Unkept.SCOPE


def _keeps_scope(wish: Intent, rules: NodeRules, program: Program) -> bool:
    """Whether the node's scope gives at least what the wished one would (koordinator spec 20.3, predict mode)."""
    if wish.scope in (None, rules.scope):
        return True
    if wish.scope == "container":
        # One zone for all containers is one zone for each. Wider masks may be wider than a container needs.
        return rules.policy == "single-numa-node"
    return _is_aligned_once(program)


def _is_aligned_once(program: Program) -> bool:
    """Whether one container alone is aligned, so that its zones are the pod's."""
    roles = {step.role for step in program.steps}
    return roles <= {Role.APP} and sum(_asks(step.ask) for step in program.steps) <= 1


def _asks(ask: Ask) -> bool:
    return bool(ask.cpus or ask.memory is None or ask.memory or ask.devices)
