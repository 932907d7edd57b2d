"""After any history of nodes, pods and storage, the rules about them say what they would say of a fresh start."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.placement.rules.pods.interpodaffinity import InterPodAffinity
from numalign.placement.rules.pods.podtopologyspread import PodTopologySpread
from numalign.placement.rules.rule import FilterRule, Refusal, ScoreRule
from tests.unit.placement.rules import neighbours, stores, worlds
from tests.unit.placement.rules.neighbours import HOST, ZONE, away, constraint, liking, near, should, term, web
from tests.unit.placement.rules.stores import Store, claim, csi_node, storage_class, volume

CSI: dict[str, Any] = {"csi": {"driver": "csi.example", "volumeHandle": "h"}}
PLACED = (
    web(),
    web(affinity=away(term())),
    neighbours.pod({"app": "db"}, affinity=liking(3, term(HOST))),
    stores.pod("c"),
    stores.pod("e", volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]),
)
ASKING = (
    web(topologySpreadConstraints=[constraint(), should(HOST)]),
    web(affinity=near(term()) | away(term(HOST))),
    web(affinity=liking(2, term())),
    stores.pod("c", volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "x"}}]),
    stores.pod("d", "e"),
)
STORED = (
    claim("c", accessModes=["ReadWriteOncePod"], bound="v"),
    claim("d"),
    claim("d", storageClassName="fast", metadata={"resourceVersion": "2"}),
    claim("e", bound="w"),
    volume("v", node="n0", **CSI),
    volume("v", metadata={"labels": {ZONE: "x"}}),
    volume("w", "7Gi", **CSI),
    volume("x", "6Gi", node="n1"),
    csi_node("n0", csi_example=0),
    csi_node("n1", csi_example=1),
    storage_class(),
    storage_class("fast", "csi.example"),
    stores.csi_driver("csi.example", storageCapacity=True),
    stores.space("s", "6Gi", zone="x"),
    stores.attachment("a", "n1", "w"),
)

rows, uids = st.integers(0, 2), st.sampled_from(["t", "u", "v"])
labels = st.fixed_dictionaries({}, optional={ZONE: st.sampled_from("xy")})
steps = st.one_of(
    st.tuples(st.just("node"), rows, st.one_of(st.none(), labels)),
    st.tuples(st.just("pod"), uids, st.one_of(st.none(), st.tuples(rows, st.sampled_from(PLACED)))),
    st.tuples(st.just("store"), st.sampled_from(STORED), st.booleans()),
)


def step(store: Store, what: str, which: Any, how: Any) -> None:
    match what, how:
        case "node", None:
            store.world.drop_node(which)
        case "node", _:
            store.world.put_node(which, worlds.node(f"n{which}", labels=how | {HOST: f"n{which}"}))
        case "pod", None:
            store.world.drop_pod(which)
        case "pod", _:
            store.world.put_pod(which, *how)
        case "store", True:
            store.put(which)
        case "store", False:
            store.shelf(type(which)).drop(which.metadata.full_name)


def end(history: list[Any]) -> list[Any]:
    """The last word on each node, pod and object."""
    last: dict[Any, Any] = {}
    for what, which, how in history:
        name = (type(which), which.metadata.full_name) if what == "store" else which
        last[what, name] = (what, which, how)
    return [each for each in last.values() if each[2] not in (None, False)]


def rules(store: Store) -> tuple[list[FilterRule[Any]], list[ScoreRule[Any]]]:
    around = store.around
    spread = PodTopologySpread(around.counts, around.owners)
    affinity = InterPodAffinity(around.counts, around.terms, around.namespaces)
    binding = store.binding()
    filters: list[FilterRule[Any]] = [spread, affinity, binding, store.zone(), store.restrictions(), store.limits()]
    return filters, [spread, affinity, binding]


def said(store: Store, filters: list[FilterRule[Any]], scorers: list[ScoreRule[Any]]) -> list[object]:
    rows, answers = worlds.all_rows(store.world), list[object]()
    for pod in ASKING:
        for rule in filters:
            prepared: Any = rule.prepare(pod, store.world)
            found = prepared is not None and not isinstance(prepared, Refusal)
            codes = rule.filter(prepared)[rows].tolist() if found else []
            answers.append([code and prepared.refusals[code] for code in codes] if found else prepared)
        for scorer in scorers:
            ready: Any = scorer.prepare_score(pod, store.world, rows)
            answers.append(None if ready is None else scorer.score(ready, rows).tolist())
    return answers


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=25))
def test_any_history_ends_where_a_fresh_start_begins(history: list[Any]) -> None:
    store, fresh = Store(nodes=""), Store(nodes="")
    filters, scorers = rules(store)
    for each in history:
        step(store, *each)
        said(store, filters, scorers)
    for each in end(history):
        step(fresh, *each)
    assert said(store, filters, scorers) == said(fresh, *rules(fresh))
