"""Answers the questions of kube-scheduler's extender protocol from the scheduler's engine.

`http.extenderserver` calls `Extender` for each request; `tick` is called at intervals. kube-scheduler has applied its
own filters to the nodes that it names, so only zones are asked about here, and pods that no kubelet aligns are passed
at once.

kube-scheduler asks about the next pod before the API server shows where the last one went. So the extender chooses a
node itself and charges the pod to it. With the verb `choose` that node is the only one in the answer, and
kube-scheduler scores nothing. With `filter` and `prioritize` it gets the only highest score. `charges` says when a
charge ends. Where kube-scheduler chose another node, the watch event moves the charge. With the verb `bind` the
extender knows the choice, and refuses a node that would reject the pod, also where the charge has ended meanwhile or
another process was asked."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import compress
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kube import binding, errors
from numalign.kube.binding import Outcome
from numalign.kube.client import Client
from numalign.kube.resources import PODS
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Decision, Randomness, Wake
from numalign.placement.explain import wording
from numalign.placement.rules.nodes.topologyreports import TopologyReports
from numalign.placement.rules.resources.resourcesfit import NO_VICTIMS, FreedRows
from numalign.placement.rules.rule import Rows
from numalign.process.log import about
from numalign.scheduler import metrics, placementannotation
from numalign.scheduler.choose import choose, filtering, messages, scoring
from numalign.scheduler.choose.choose import Attempt, AttemptContext, Chosen
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.filtering import Refused
from numalign.scheduler.events import podhistory
from numalign.scheduler.events.podhistory import SILENT, PodHistories
from numalign.scheduler.events.publish import Publisher
from numalign.scheduler.extender.charges import Charges
from numalign.scheduler.extender.earliervictims import EarlierVictims
from numalign.scheduler.extender.noderows import NodeRows
from numalign.scheduler.extender.protocol import (
    BindingAnswer,
    BindingArgs,
    ExtenderArgs,
    FilterResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    NodeList,
    PreemptionArgs,
    PreemptionResult,
    name_of,
)
from numalign.scheduler.extender.refusedpods import RefusedPods
from numalign.scheduler.preempt.preemption import Preemption, PreemptionRequest
from numalign.scheduler.preempt.preemptor import Preemptor
from numalign.scheduler.profiles import Profile

LOG: Final = logging.getLogger(__name__)
HOLD: Final = 5.0
"""Seconds for which a pod stays charged whose binding is not seen."""
STOCK_FIRST: Final = 1.0
"""Seconds after a refusal in which kube-scheduler may nominate the pod to a node by its own preemption."""
HIGHEST: Final = 10
"""The highest score of the protocol, for the node that the extender chose."""
OURS: Final = "numalign schedules the pods of scheduler {name} itself: only one of the two schedulers may"
UNKNOWN_NODE: Final = "node(s) not known to numalign yet"
PLACED: Final = "the pod is bound to node {node}, or its Binding to that node is under way"


class Evicts(StrEnum):
    """Who evicts pods to make room in a zone, where the totals of the node suffice."""

    NONE = "none"
    NUMALIGN = "numalign"
    """The extender does, because kube-scheduler up to 1.37 does not find victims then."""
    KUBE_SCHEDULER = "kube-scheduler"
    """kube-scheduler from 1.38 on asks the extender for victims."""


class ExtenderSettings(Struct, frozen=True, kw_only=True):
    hold: float = HOLD
    evicts: Evicts = Evicts.NONE


class Extender:
    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Profile],
        context: AttemptContext,
        preemption: Preemption,
        preemptor: Preemptor,
        publisher: Publisher,
        client: Client,
        *,
        rng: Randomness,
        leads: Callable[[], bool] = lambda: True,
        own: Collection[str] = (),
        woken: Callable[[list[Wake]], None] = lambda _: None,
        histories: PodHistories = SILENT,
        settings: ExtenderSettings,
    ) -> None:
        """`profiles`: by scheduler name; pods of other names are judged by the first one. `own`: the names whose pods
        this process schedules itself. `leads`: only the leader evicts pods. `woken`: called with the nodes on which the
        end of a charge makes room."""
        self._cluster, self._profiles, self._context = cluster, profiles, context
        self._own, self._histories = own, histories
        self._preemption, self._preemptor, self._publisher = preemption, preemptor, publisher
        self._evicts, self._leads = settings.evicts, leads
        self._client, self._clock, self._rng = client, client.sender.clock, rng
        self._refused = RefusedPods(STOCK_FIRST if settings.evicts is Evicts.NUMALIGN else None)
        self._node_rows = NodeRows(cluster.world)
        self._charges, self._earlier = Charges(cluster, settings.hold, woken), EarlierVictims(cluster)

    @property
    def held(self) -> int:
        """How many pods are charged whose binding is not seen."""
        return len(self._charges)

    def choose(self, asked: ExtenderArgs) -> FilterResult:
        """The best node that will admit the pod, charged; if no node will, the reason of each. All nodes for a pod that
        no kubelet aligns."""
        return self._filtered(asked, one=True)

    def filter(self, asked: ExtenderArgs) -> FilterResult:
        """The nodes that will admit the pod; the reason of each other node, unless some node will do."""
        return self._filtered(asked, one=False)

    def _filtered(self, asked: ExtenderArgs, *, one: bool) -> FilterResult:
        pod, profile = asked.pod, self._profile(asked.pod)
        if pod.spec.scheduler_name in self._own:
            return FilterResult(error=OURS.format(name=pod.spec.scheduler_name))
        if node := self._placed_on(pod.metadata.uid, asked.names):
            is_asked = node in asked.names
            return _passed(asked, (node,), {}) if is_asked else FilterResult(error=PLACED.format(node=node))
        self._charges.release(pod.metadata.uid)
        self._refused.drop(pod.metadata.uid)
        try:
            shape = filtering.shape(profile, self._cluster.engine, pod)
        except BadObject as problem:
            self._histories.record(pod.metadata, metrics.UNSCHEDULABLE, why=str(problem))
            return _passed(asked, (), dict.fromkeys(asked.names, str(problem)))
        if not _concerns(profile, shape):
            return _passed(asked, asked.names, {})
        attempt = self._attempt(pod, shape)
        names, places = asked.names, self._node_rows.of(asked.names)
        refused = self._left_out(attempt, profile)
        fitting = self._admitting(attempt, profile, _without(self._rows(places), refused), one=one)
        if len(fitting) == 1:
            return _passed(asked, (self._cluster.engine.names[fitting.item()],), {})
        if len(fitting):
            passing = self._marked(fitting)[places]
            return _passed(asked, names if passing.all() else compress(names, passing.tolist()), {})
        self._refused.put(pod, attempt.now)
        rows = _by_name(names, places)
        reasons = self._reasons(attempt, names, rows, refused)
        why = wording.unavailable(len(reasons), Counter(reasons.values()))
        self._histories.record(pod.metadata, metrics.UNSCHEDULABLE, why=why)
        return _passed(asked, (), reasons, self._resolvable(attempt, profile, rows, refused))

    def prioritize(self, asked: ExtenderArgs) -> list[HostPriority]:
        """The highest score for the node that the pod is charged to. kube-scheduler takes nodes that are missing for
        nodes of score 0; without any score it chooses itself."""
        pod, profile = asked.pod, self._profile(asked.pod)
        if node := self._placed_on(pod.metadata.uid, asked.names):
            return [HostPriority(node, HIGHEST)] if node in asked.names else []
        try:
            shape = filtering.shape(profile, self._cluster.engine, pod)
        except BadObject:
            return []
        if not _concerns(profile, shape):
            return []
        chosen = self._charged(self._attempt(pod, shape), profile, self._rows(self._node_rows.of(asked.names)))
        return [HostPriority(chosen.node, HIGHEST)] if chosen is not None else []

    def preempt(self, asked: PreemptionArgs) -> PreemptionResult:
        """The nodes on which the kubelet admits the pod once the victims are gone: kube-scheduler's victims where
        these suffice, others where others do."""
        pod, profile, candidates = asked.pod, self._profile(asked.pod), asked.candidates
        try:
            shape = filtering.shape(profile, self._cluster.engine, pod)
        except BadObject:
            return PreemptionResult()
        if not _concerns(profile, shape):
            return PreemptionResult({node: each for node, each in candidates.items() if each.pods})
        now = self._clock.now()
        if self._placed_on(pod.metadata.uid, tuple(candidates)) or self._earlier.are_leaving(pod.metadata.uid, now):
            # No pod is to end for one that has its place, or that gets it once its earlier victims are gone.
            return PreemptionResult()
        # The charge of an earlier question must not count as a pod that is there.
        self._charges.release(pod.metadata.uid)
        rows = _by_name(tuple(candidates), self._node_rows.of(tuple(candidates)))
        refused = self._left_out(self._attempt(pod, shape), profile)
        supposed = {row: candidates[name].uids for name, row in rows.items() if row not in refused}
        names, found = self._cluster.engine.names, dict[str, MetaVictims]()
        for row, victims in self._preemption.on_rows(pod, shape, profile, supposed).items():
            name = names[row]
            if victims is None:
                found[name] = candidates[name]
            elif not any(self._charges.is_tentative(each.metadata.uid) for each in victims.pods):
                pods = tuple(MetaPod(each.metadata.uid) for each in victims.pods)
                found[name] = MetaVictims(pods, victims.violations)
        self._earlier.put(pod.metadata.uid, [each.uids for each in found.values()], now)
        return PreemptionResult(found)

    async def bind(self, asked: BindingArgs) -> BindingAnswer:
        """Binds the pod to the node, with its predicted zones; refuses a node that would reject the pod."""
        meta = ObjectMeta(name=asked.name, namespace=asked.namespace, uid=asked.uid)
        try:
            decision, why = self._confirmed(asked, await self._waiting(asked))
        except (errors.KubeError, BadObject) as problem:
            decision, why = None, str(problem)
        if why:
            self._histories.warn(meta, podhistory.FAILED, node=asked.node, why=why)
            return BindingAnswer(why)
        said = placementannotation.annotations(decision, meta) if decision is not None else {}
        with self._charges.sending(asked.uid):
            answer = await binding.bind(self._client, meta, asked.node, said)
        if answer.outcome is Outcome.DONE:
            self._charges.bound(asked.uid)
            if decision is not None:
                self._histories.record(meta, podhistory.BOUND, node=asked.node)
            return BindingAnswer()
        self._histories.warn(meta, podhistory.FAILED, node=asked.node, why=answer.why)
        if answer.outcome is not Outcome.UNKNOWN:
            self._charges.release(asked.uid)
        return BindingAnswer(answer.why or answer.outcome.value)

    def improved(self, wakes: list[Wake]) -> None:
        """Nodes may admit more than before."""
        if wakes:
            self._refused.improved()

    def tick(self) -> Iterator[None]:
        """Ends charges of pods whose binding was not seen in time, and looks again at pods that were refused. Yields
        after each of these, because questions of kube-scheduler must not wait for all of them."""
        self._charges.tick(self._clock.now())
        self._node_rows.tick()
        waiting = self._cluster.waiting_elsewhere
        for uid in self._refused.due(waiting, self._clock.now()):
            pod = waiting.get(uid)
            if pod is None or uid not in self._refused:
                # It was bound, deleted or asked about meanwhile.
                continue
            try:
                self._revisit(pod, self._clock.now())
            except BadObject as problem:
                # The pod was changed since kube-scheduler asked. The answer to the next question says what is wrong.
                LOG.info("%s", problem, extra=about(pod=pod.metadata.full_name, uid=uid))
                self._refused.drop(uid)
            yield

    def _revisit(self, pod: Pod, now: float) -> None:
        """Nominates the pod to a node that admits it by now. kube-scheduler does not see that reports of zones change,
        but it sees the nomination, and tries the pod on that node first."""
        profile = self._profile(pod)
        shape = filtering.shape(profile, self._cluster.engine, pod)
        found = choose.choose(self._attempt(pod, shape), profile, self._cluster, self._rng)
        if isinstance(found, Chosen):
            self._refused.drop(pod.metadata.uid)
            self._charge(pod, found.decision, now)
            self._nominate(pod, found.decision.node)
        elif self._evicts is Evicts.NUMALIGN and profile.preemption is not None and self._leads():
            self._evict(
                PreemptionRequest(pod=pod, shape=shape, found=found, now=now, args=profile.preemption, profile=profile)
            )

    def _evict(self, asked: PreemptionRequest) -> None:
        """Evicts pods of lower priority, if that makes a kubelet admit the pod."""
        pod = asked.pod
        if pod.status.nominated_node_name and not self._context.nominations.victims_of(pod.metadata.uid):
            # kube-scheduler has made room for the pod.
            return
        outcome = self._preemptor.attempt(asked, elsewhere=True)
        if outcome.nominated:
            LOG.info("%s", outcome.message, extra=about(pod=pod.metadata.full_name, node=outcome.nominated))
            self._nominate(pod, outcome.nominated)

    def _nominate(self, pod: Pod, node: str) -> None:
        self._publisher.nominated(pod, node)
        self._histories.record(pod.metadata, podhistory.NOMINATED, node=node)

    def _placed_on(self, uid: str, names: Collection[str]) -> str:
        """The node that the pod has already; empty: it may go anywhere. A Binding without an answer decides nothing
        where kube-scheduler does not use its node any more."""
        node = self._charges.node_of(uid)
        return "" if node not in names and self._charges.is_open(uid) else node

    def _profile(self, pod: Pod) -> Profile:
        return self._profiles.get(pod.spec.scheduler_name) or next(iter(self._profiles.values()))

    def _attempt(self, pod: Pod, shape: Shape) -> Attempt:
        return self._context.attempt(pod, shape, self._clock.now(), 0)

    def _rows(self, places: Rows) -> Rows:
        """The rows of the nodes that are known, ascending."""
        return np.flatnonzero(self._marked(places)[:-1])

    def _marked(self, rows: Rows) -> NDArray[np.bool_]:
        """By row, whether it is among these; the last place is for nodes that have no row."""
        marks = np.zeros(self._cluster.engine.height + 1, np.bool_)
        marks[rows] = True
        return marks

    def _left_out(self, attempt: Attempt, profile: Profile) -> dict[int, str]:
        """By row, the reason of nodes whose zones are not known, and of those that the storm guard avoids."""
        unreported = [rule for rule in profile.filters if isinstance(rule, TopologyReports)]
        found = filtering.filtered(attempt.pod, unreported, self._cluster.world)
        assert not isinstance(found, Refused)
        awaited = {row: refusal.reasons[0] for _, refusal, refused in found.tallies() for row in refused.tolist()}
        return {**attempt.kept_off, **awaited}

    def _admitting(self, attempt: Attempt, profile: Profile, candidates: Rows, *, one: bool) -> Rows:
        """The rows that admit the pod for certain; the best of them where only a search can tell, or for `one`."""
        engine = self._cluster.engine
        codes = filtering.survey(profile, engine, attempt.shape, candidates)
        candidates = candidates[codes[candidates] >= 0]
        if attempt.promised:
            candidates = _sorted(row for row in candidates.tolist() if self._leaves_room(attempt, profile, row))
        if not one:
            tiers = filtering.certainties(profile, engine, aligned=True).take(codes[candidates])
            certain = candidates[tiers == tiers.max()] if len(tiers) else candidates
            if len(certain) > 1 and tiers.max() >= scoring.BY_SCORE:
                return certain
        # kube-scheduler does not ask for the scores of a single node, so it is charged now.
        chosen = self._charged(attempt, profile, candidates)
        return candidates[:0] if chosen is None else _sorted((engine.rows[chosen.node],))

    def _leaves_room(self, attempt: Attempt, profile: Profile, row: int) -> bool:
        """Whether the pods that are nominated to the node, and are not less important, still fit."""
        others = attempt.promised.get(row)
        if not others:
            return True
        asked = filtering.whatif(profile, self._cluster.engine, attempt.pod, attempt.shape)
        return asked.leaves_room(row, attempt.leaving.get(row, ()), others)

    def _charged(self, attempt: Attempt, profile: Profile, rows: Rows) -> Decision | None:
        """The pod on the best of these rows, or where it is charged already; None: no row is certain to admit it."""
        uid = attempt.pod.metadata.uid
        assumed = self._charges.of(uid)
        if assumed is not None and self._cluster.engine.rows.get(assumed.decision.node, -1) in rows:
            return assumed.decision
        self._charges.release(uid)
        decision = choose.best(attempt, profile, self._cluster, rows, self._rng)
        if decision is not None:
            self._charge(attempt.pod, decision, attempt.now)
        return decision

    def _charge(self, pod: Pod, decision: Decision, now: float) -> None:
        self._charges.charge(pod, decision, now)
        self._histories.record(pod.metadata, podhistory.SELECTED, node=decision.node)

    async def _waiting(self, asked: BindingArgs) -> Pod | None:
        """The pod that is to be bound; None: it has a node. Reads it where the watch does not show it waiting, because
        kube-scheduler's watch may be ahead."""
        assumed, pod = self._charges.of(asked.uid), self._cluster.waiting_elsewhere.get(asked.uid)
        if pod is not None or assumed is not None:
            return pod or (assumed.decision.pod if assumed is not None else None)
        if self._cluster.counts(asked.uid):
            return None
        pod = await self._client.get(PODS.at(asked.name, asked.namespace))
        if pod.metadata.uid != asked.uid:
            raise BadObject("Pod", pod.metadata.full_name, "metadata.uid", f"is not {asked.uid}: it is another pod")
        return None if pod.spec.node_name else pod

    def _confirmed(self, asked: BindingArgs, pod: Pod | None) -> tuple[Decision | None, str]:
        """The pod on the node that kube-scheduler chose, or why it is not to be bound there. Neither: the pod has a
        node, and the API server says whether it is this one; or no kubelet aligns it."""
        if pod is None:
            return None, ""
        if pod.spec.scheduler_name in self._own:
            return None, OURS.format(name=pod.spec.scheduler_name)
        assumed = self._charges.of(asked.uid)
        if assumed is not None and assumed.decision.node == asked.node:
            return assumed.decision, ""
        if assumed is not None and assumed.is_sent:
            return None, PLACED.format(node=assumed.decision.node)
        profile = self._profile(pod)
        shape = filtering.shape(profile, self._cluster.engine, pod)
        if not _concerns(profile, shape):
            return None, ""
        self._charges.release(asked.uid)
        attempt, names = self._attempt(pod, shape), (asked.node,)
        rows, refused = _by_name(names, self._node_rows.of(names)), self._left_out(attempt, profile)
        decision = self._charged(attempt, profile, _without(_sorted(rows.values()), refused))
        if decision is not None:
            return decision, ""
        why = self._reasons(attempt, names, rows, refused)[asked.node]
        return None, f"node {asked.node} would reject pod {pod.metadata.full_name}: {why}"

    def _reasons(
        self, attempt: Attempt, names: Iterable[str], rows: Mapping[str, int], refused: Mapping[int, str]
    ) -> dict[str, str]:
        """By node. Nodes of one reason have one text, so that kube-scheduler counts them together."""
        found = {name: refused[row] for name, row in rows.items() if row in refused}
        others = _sorted(row for row in rows.values() if row not in refused)
        for group in messages.zone_groups(others, attempt.pod, attempt.shape, self._cluster.engine):
            found |= dict.fromkeys(group.nodes, wording.of_zones(group.answer))
        return {name: found.get(name, wording.PROMISED if name in rows else UNKNOWN_NODE) for name in names}

    def _resolvable(
        self, attempt: Attempt, profile: Profile, rows: Mapping[str, int], refused: Mapping[int, str]
    ) -> Collection[str]:
        """The nodes on which kube-scheduler is to look for victims: it asks for them with the verb `preempt`."""
        if self._evicts is not Evicts.KUBE_SCHEDULER:
            return ()
        without = FreedRows((), attempt.pod.spec.priority, self._cluster.world).codes()
        asked = filtering.whatif(profile, self._cluster.engine, attempt.pod, attempt.shape)
        return {
            name
            for name, row in rows.items()
            if row not in refused and without[row] != NO_VICTIMS and asked.is_possible(row)
        }


def _concerns(profile: Profile, shape: Shape) -> bool:
    """Whether a kubelet may align pods of this shape, and the profile looks at zones."""
    return profile.zones and scoring.is_aligned(shape)


def _by_name(names: Sequence[str], places: Rows) -> dict[str, int]:
    """The rows of the nodes that are known."""
    return {name: row for name, row in zip(names, places.tolist(), strict=True) if row >= 0}


def _without(rows: Rows, others: Collection[int]) -> Rows:
    return rows[~np.isin(rows, np.fromiter(others, np.intp))] if others else rows


def _passed(
    asked: ExtenderArgs, names: Iterable[str], failed: Mapping[str, str], resolvable: Collection[str] = ()
) -> FilterResult:
    """`resolvable`: the failed nodes on which evictions may help."""
    passing = tuple(names)
    hopeful = {name: failed[name] for name in resolvable}
    hopeless = {name: reason for name, reason in failed.items() if name not in hopeful} if hopeful else dict(failed)
    if asked.node_names is not None or asked.nodes is None:
        return FilterResult(node_names=passing, failed_nodes=hopeful, failed_and_unresolvable_nodes=hopeless)
    wanted = set(passing)
    nodes = NodeList(tuple(each for each in asked.nodes.items if name_of(each) in wanted))
    return FilterResult(nodes=nodes, failed_nodes=hopeful, failed_and_unresolvable_nodes=hopeless)


def _sorted(rows: Iterable[int]) -> Rows:
    return np.sort(np.fromiter(rows, np.intp))
