"""The affinity terms of the pod that is to be placed: which of the pods on nodes they are about.

Both halves of InterPodAffinity ask here. Namespaces that a term chooses by label are resolved to names first, so that
matching needs no look at namespaces any more (kube-scheduler spec 1.13). Equal terms make equal questions to
`podcounts`."""

from __future__ import annotations

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.rules.pods import podterms
from numalign.placement.rules.pods.namespaces import Namespaces
from numalign.placement.rules.pods.podcounts import Question, Scope
from numalign.placement.rules.pods.podterms import Role, Term


class ScopedTerm(Struct, frozen=True):
    key: str
    scope: Scope
    weight: int = 0

    @property
    def question(self) -> Question:
        return Question(scopes=(self.scope,))


Terms = dict[Role, list[ScopedTerm]]


def of_pod(pod: Pod, namespaces: Namespaces) -> Terms:
    terms: Terms = {role: [] for role in Role}
    for held in podterms.of_pod(pod):
        scope = _scope(held.term, namespaces)
        terms[held.role].append(ScopedTerm(key=held.term.key, scope=scope, weight=held.weight))
    return terms


def _scope(term: Term, namespaces: Namespaces) -> Scope:
    chosen = None
    if not term.namespace_selector.is_empty:
        chosen = term.namespaces | namespaces.matching(term.namespace_selector)
    return Scope(namespaces=chosen, selector=term.selector)
