"""Upstream's placement payload: who knows the pods of a plain report learns in which zones they sit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from numalign.api.nrt import placementcodec
from numalign.api.nrt.placementcodec import ContainerRef, Payload
from numalign.api.objects.pod import Pod
from numalign.kubelet import holdings
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.columns.nodefacts import RowFacts
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.ledger import observed
from numalign.placement.ledger.divergences import DivergenceKind
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.ledger.observed import Observation
from numalign.placement.reports import read
from tests.campaigns import holds_for
from tests.strategies import reports
from tests.strategies.kubelet import machines
from tests.strategies.lives import Life, lives
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import NODE

A, B = words.pod("a"), words.pod("b")


def payload(**zones: int) -> Payload:
    """By pod, whose container is called app."""
    return placementcodec.encode({ContainerRef("default", pod, "app"): zone for pod, zone in zones.items()}, 2)


def known(*pods: Pod) -> Ledger:
    """Running pods of other schedulers, without a forecast."""
    ledger = words.ledger()
    for pod in pods:
        ledger.seen(words.running(pod), 1.0)
    return ledger


def entries(ledger: Ledger, pod: Pod) -> tuple[Source, Sequence[Entry]] | None:
    found = ledger.holding(pod.metadata.uid)
    return (found.source, found.entries) if found else None


def test_a_pod_sits_where_the_payload_says() -> None:
    ledger = known(A, B)
    ledger.report(words.signed((6, 6), "a", "b", payload=payload(a=1, b=0)))
    assert entries(ledger, A) == (Source.OBSERVED, (Entry(CPU, 2, 0b10),))
    assert entries(ledger, B) == (Source.OBSERVED, (Entry(CPU, 2, 0b01),))


def test_what_it_held_is_free_in_its_zone_once_it_ends() -> None:
    ledger = known(A, B)
    ledger.report(words.signed((6, 6), "a", "b", payload=payload(a=1, b=0)))
    ledger.seen(words.finished(A), 2.0)
    ledger.report(words.signed((6, 6), "a", "b", payload=payload(a=1, b=0)))
    assert [most for _, most in words.bounds(ledger)] == [6, 8]


def test_a_prediction_that_the_payload_contradicts_is_counted() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.held(A, 0))
    (wrong,) = ledger.report(words.signed((8, 6), "a", payload=payload(a=1))).divergences
    assert (wrong.kind, wrong.predicted, wrong.observed) == (DivergenceKind.ZONES, ((0,),), (1,))
    assert entries(ledger, A) == (Source.OBSERVED, (Entry(CPU, 2, 0b10),))


def test_a_prediction_that_it_confirms_is_an_observation() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, A, words.held(A, 0))
    assert ledger.report(words.signed((6, 8), "a", payload=payload(a=0))).divergences == ()
    assert entries(ledger, A) == (Source.OBSERVED, (Entry(CPU, 2, 0b01),))


UNREADABLE = {
    "for other pods": words.signed((6, 6), "a", "c", payload=payload(a=1, c=0)),
    "for fewer containers": words.signed((6, 6), "a", "b", payload=payload(a=1)),
    "without a fingerprint": words.facts((6, 6), payload=payload(a=1, b=0)),
    "corrupted": words.signed((6, 6), "a", "b", payload=Payload(containers=2, zones=2, busiest=0, vectors={1: "f"})),
}


@pytest.mark.parametrize("facts", UNREADABLE.values(), ids=UNREADABLE)
def test_a_payload_that_cannot_be_read_says_nothing(facts: RowFacts) -> None:
    ledger = known(A, B)
    ledger.report(facts)
    found = entries(ledger, A)
    assert found is None or found[0] is not Source.OBSERVED


def test_init_containers_are_in_no_payload_and_stay_charged() -> None:
    slow = words.pod("a", init=[words.container("setup", 4)])
    ledger = known(slow)
    ledger.report(words.signed((6, 8), "a", payload=payload(a=0)))
    assert entries(ledger, slow) == (Source.OBSERVED, (Entry(CPU, 2, 0b01),))
    assert words.bounds(ledger)[0][0] < 6


def test_what_init_containers_hold_may_be_deducted_without_being_shown() -> None:
    """As our agent does in RTE's form: it lists what RTE lists, with what is free from the kubelet's checkpoints."""
    slow = words.pod("a", init=[words.container("setup", 4)])
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, slow, words.held(slow, 0, 4))
    assert ledger.report(words.signed((4, 8), "a", payload=payload(a=0))).divergences == ()
    (wrong,) = ledger.report(words.signed((1, 8), "a", payload=payload(a=0))).divergences
    assert wrong.kind is DivergenceKind.TOTALS


SINGLE = {"topology_policy": "single-numa-node", "topology_options": {}}


@holds_for(lives(on=machines(max_zones=4), settings=SINGLE), examples=40)
def test_what_is_read_is_what_pods_hold(life: Life) -> None:
    """Pods of any kind on machines of any kind, known to the ledger by their specs alone."""
    resources = Resources()
    ledger = Ledger(resources, Shapes(), lambda pod, row: ())
    for pod in life.end.active.values():
        ledger.seen(words.running(on_node(pod)), 1.0)
    ledger.report(read.read(reports.plain(life.kubelet, life.end), reports.node(life.kubelet)))
    exact = read.read(reports.ours(life.kubelet, life.end), None)
    for listed in holdings.listed(life.kubelet, life.end):
        held = ledger.holding(listed.uid or listed.name)
        if held is not None and held.source is Source.OBSERVED:
            assert not differences(held, observed.read(listed, exact, resources))


def on_node(pod: Pod) -> Pod:
    return structs.replace(
        pod,
        metadata=structs.replace(pod.metadata, namespace="default"),
        spec=structs.replace(pod.spec, node_name="worker-7"),
    )


def differences(held: Holding, truth: Observation) -> list[str]:
    """What is said of a pod and not so. A device that reaches several zones counts in the one of its container, and of
    devices that may lie in no zone nobody can tell how many do."""
    sits = {each.container: each.union for each in truth.containers}
    wrong = [f"{each}" for each in held.containers if each.union & ~sits.get(each.container, 0)]
    for entry in held.entries:
        real = sum(each.amount for each in truth.entries if each.column == entry.column and each.zones & entry.zones)
        if real > entry.amount or (entry.certain and real != entry.amount):
            wrong.append(f"{entry} and not {real}")
    return wrong
