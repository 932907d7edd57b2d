"""Answers the questions of kube-scheduler's extender protocol from the scheduler's engine.

`http.extenderserver` calls `Extender` for each request; `tick` is called at intervals. kube-scheduler has applied its
own filters to the nodes that it names, so only zones are asked about here, and pods that no kubelet aligns are passed
at once.

kube-scheduler asks about the next pod before the API server shows where the last one went. So the extender chooses a
node itself, gives it the only highest score, and charges the pod to it. The charge ends when a watch event shows the
pod on a node, when kube-scheduler asks about the pod again, or after `hold` seconds. Where kube-scheduler chose another
node, the watch event moves the charge. With the verb `bind` the extender knows the choice, and refuses a node that
would reject the pod."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kube import binding
from numalign.kube.binding import Outcome
from numalign.kube.client import Client
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Decision, Randomness
from numalign.placement.explain import wording
from numalign.placement.rules.nodes.topologyreports import TopologyReports
from numalign.placement.rules.rule import Rows
from numalign.process.log import about
from numalign.scheduler import placementannotation
from numalign.scheduler.choose import choose, filtering, messages, scoring
from numalign.scheduler.choose.choose import Attempt, AttemptContext
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.filtering import Refused
from numalign.scheduler.extender.protocol import (
    BindingAnswer,
    BindingArgs,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    NodeList,
    name_of,
)
from numalign.scheduler.profiles import Profile

LOG: Final = logging.getLogger(__name__)
HOLD: Final = 5.0
"""Seconds for which a pod stays charged whose binding is not seen."""
HIGHEST: Final = 10
"""The highest score of the protocol, for the node that the extender chose; other nodes have less."""
ZONE_SCORES: Final = 100
UNKNOWN_NODE: Final = "node(s) not known to numalign yet"


class Extender:
    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Profile],
        context: AttemptContext,
        client: Client,
        *,
        rng: Randomness,
        hold: float = HOLD,
    ) -> None:
        """`profiles`: by scheduler name; pods of other names are judged by the first one."""
        self._cluster, self._profiles, self._context = cluster, profiles, context
        self._client, self._clock, self._rng, self._hold = client, client.sender.clock, rng, hold
        self._held: dict[str, float] = {}
        """By uid: until when the charge of a pod lasts whose binding is not seen."""

    @property
    def held(self) -> int:
        """How many pods are charged whose binding is not seen."""
        return len(self._held)

    def filter(self, asked: ExtenderArgs) -> FilterResult:
        """The nodes that will admit the pod; the reason of each other node, unless some node will do."""
        pod, profile = asked.pod, self._profile(asked.pod)
        self._release(pod.metadata.uid)
        try:
            shape = filtering.shape(profile, self._cluster.engine, pod)
        except BadObject as problem:
            return _passed(asked, (), dict.fromkeys(asked.names, str(problem)))
        if not _concerns(profile, shape):
            return _passed(asked, asked.names, {})
        attempt = self._attempt(pod, shape)
        rows = self._rows(asked.names)
        refused = self._left_out(attempt, profile, rows)
        fitting = self._admitting(attempt, profile, [row for row in rows.values() if row not in refused])
        if len(fitting):
            names = self._cluster.engine.names
            admitting = {names[row] for row in fitting.tolist()}
            return _passed(asked, [name for name in asked.names if name in admitting], {})
        return _passed(asked, (), self._reasons(attempt, asked.names, rows, refused))

    def prioritize(self, asked: ExtenderArgs) -> list[HostPriority]:
        """Scores by zones. The pod is charged to the node of the highest score; equal scores leave the choice to
        kube-scheduler."""
        pod, profile = asked.pod, self._profile(asked.pod)
        try:
            shape = filtering.shape(profile, self._cluster.engine, pod)
        except BadObject:
            return _equal(asked.names)
        if not _concerns(profile, shape):
            return _equal(asked.names)
        rows = self._rows(asked.names)
        chosen = self._charged(self._attempt(pod, shape), profile, _sorted(rows.values()))
        if chosen is None:
            return _equal(asked.names)
        codes = filtering.survey(profile, self._cluster.engine, shape, _sorted(rows.values()))
        scores = {name: max(0, int(codes[row])) * (HIGHEST - 1) // ZONE_SCORES for name, row in rows.items()}
        scores[chosen.node] = HIGHEST
        return [HostPriority(name, scores.get(name, 0)) for name in asked.names]

    async def bind(self, asked: BindingArgs) -> BindingAnswer:
        """Binds the pod to the node, with its predicted zones; refuses a node that would reject the pod."""
        meta = ObjectMeta(name=asked.name, namespace=asked.namespace, uid=asked.uid)
        decision, why = self._confirmed(asked)
        if why:
            return BindingAnswer(f"node {asked.node} would reject pod {meta.full_name}: {why}")
        predicted = placementannotation.of(decision) if decision is not None else ""
        said = {placementannotation.NAME: predicted} if predicted else {}
        self._cluster.sends(asked.uid)
        answer = await binding.bind(self._client, meta, asked.node, said)
        if answer.outcome is Outcome.DONE:
            self._held.pop(asked.uid, None)
            self._cluster.bound(asked.uid)
            return BindingAnswer()
        LOG.warning("Failed to bind pod: %s", answer.why, extra=about(pod=meta.full_name, node=asked.node))
        if answer.outcome is not Outcome.UNKNOWN:
            self._release(asked.uid)
        return BindingAnswer(answer.why or answer.outcome.value)

    def tick(self) -> None:
        """Ends charges of pods whose binding was not seen in time."""
        now = self._clock.now()
        for uid in [uid for uid, until in self._held.items() if now >= until or uid not in self._cluster.assumed]:
            assumed = self._cluster.assumed.get(uid)
            if assumed is None:
                del self._held[uid]
            elif not assumed.is_sent:
                self._release(uid)

    def _profile(self, pod: Pod) -> Profile:
        return self._profiles.get(pod.spec.scheduler_name) or next(iter(self._profiles.values()))

    def _attempt(self, pod: Pod, shape: Shape) -> Attempt:
        return self._context.attempt(pod, shape, self._clock.now(), 0)

    def _rows(self, names: Iterable[str]) -> dict[str, int]:
        """By name, in the order asked; nodes that the watch has not shown yet are missing."""
        known, has_node = self._cluster.engine.rows, self._cluster.has_node
        return {name: known[name] for name in names if name in known and has_node(name)}

    def _left_out(self, attempt: Attempt, profile: Profile, rows: Mapping[str, int]) -> dict[int, str]:
        """By row, the reason of nodes whose zones are not known, and of those that the storm guard avoids."""
        unreported = [rule for rule in profile.filters if isinstance(rule, TopologyReports)]
        found = filtering.filtered(attempt.pod, unreported, self._cluster.world)
        assert not isinstance(found, Refused)
        awaited = {row: refusal.reasons[0] for _, refusal, refused in found.tallies() for row in refused.tolist()}
        return {
            row: awaited.get(row) or attempt.kept_off[row]
            for row in rows.values()
            if row in awaited or row in attempt.kept_off
        }

    def _admitting(self, attempt: Attempt, profile: Profile, rows: Sequence[int]) -> Rows:
        """The rows that admit the pod for certain; where only a search can tell, the first that a search finds."""
        engine = self._cluster.engine
        candidates = _sorted(rows)
        codes = filtering.survey(profile, engine, attempt.shape, candidates)
        candidates = candidates[codes[candidates] >= 0]
        tiers = filtering.certainties(profile, engine, codes[candidates], aligned=True)
        certain = candidates[tiers == tiers.max()] if len(tiers) else candidates
        if len(certain) > 1 and tiers.max() >= scoring.BY_SCORE:
            return certain
        # kube-scheduler does not ask for the scores of a single node, so it is charged now.
        chosen = self._charged(attempt, profile, candidates)
        return candidates[:0] if chosen is None else _sorted((engine.rows[chosen.node],))

    def _charged(self, attempt: Attempt, profile: Profile, rows: Rows) -> Decision | None:
        """The pod on the best of these rows, or where it is charged already; None: no row is certain to admit it."""
        uid = attempt.pod.metadata.uid
        assumed = self._cluster.assumed.get(uid)
        if assumed is not None and self._cluster.engine.rows.get(assumed.decision.node, -1) in rows:
            return assumed.decision
        self._release(uid)
        decision = choose.best(attempt, profile, self._cluster, rows, self._rng)
        if decision is not None:
            self._cluster.assume(attempt.pod, decision)
            self._held[uid] = self._clock.now() + self._hold
        return decision

    def _confirmed(self, asked: BindingArgs) -> tuple[Decision | None, str]:
        """The pod on the node that kube-scheduler chose, or why the node would reject it. None: the pod is not one that
        a kubelet aligns."""
        assumed = self._cluster.assumed.get(asked.uid)
        if assumed is None:
            return None, ""
        if assumed.decision.node == asked.node:
            return assumed.decision, ""
        pod = assumed.decision.pod
        assert pod is not None
        profile = self._profile(pod)
        shape = filtering.shape(profile, self._cluster.engine, pod)
        attempt, row = self._attempt(pod, shape), self._cluster.engine.rows.get(asked.node)
        self._release(asked.uid)
        if row is None:
            return None, UNKNOWN_NODE
        decision = self._charged(attempt, profile, _sorted((row,)))
        return decision, "" if decision is not None else self._reasons(attempt, (asked.node,), {asked.node: row}, {})[
            asked.node
        ]

    def _reasons(
        self, attempt: Attempt, names: Iterable[str], rows: Mapping[str, int], refused: Mapping[int, str]
    ) -> dict[str, str]:
        """By node. Nodes of one reason have one text, so that kube-scheduler counts them together."""
        found = {name: refused[row] for name, row in rows.items() if row in refused}
        others = _sorted(row for row in rows.values() if row not in refused)
        for group in messages.zone_groups(others, attempt.pod, attempt.shape, self._cluster.engine):
            found |= dict.fromkeys(group.nodes, wording.of_zones(group.answer))
        return {name: found.get(name, wording.PROMISED if name in rows else UNKNOWN_NODE) for name in names}

    def _release(self, uid: str) -> None:
        """Ends the charge of a pod whose binding was not seen."""
        if self._held.pop(uid, None) is not None:
            self._cluster.forget(uid)


def _concerns(profile: Profile, shape: Shape) -> bool:
    """Whether a kubelet may align pods of this shape, and the profile looks at zones."""
    return profile.zones and scoring.is_aligned(shape)


def _equal(names: Iterable[str]) -> list[HostPriority]:
    return [HostPriority(name, 0) for name in names]


def _passed(asked: ExtenderArgs, names: Iterable[str], failed: Mapping[str, str]) -> FilterResult:
    passing = tuple(names)
    if asked.node_names is not None or asked.nodes is None:
        return FilterResult(node_names=passing, failed_and_unresolvable_nodes=dict(failed))
    wanted = set(passing)
    nodes = NodeList(tuple(each for each in asked.nodes.items if name_of(each) in wanted))
    return FilterResult(nodes=nodes, failed_and_unresolvable_nodes=dict(failed))


def _sorted(rows: Iterable[int]) -> Rows:
    return np.sort(np.fromiter(rows, np.intp))
