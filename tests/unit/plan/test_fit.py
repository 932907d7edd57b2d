"""`plan fit`: the machines that it names are enough, and no plan has fewer than it says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.plan.questions import fit, scene
from numalign.plan.questions.fit import FitAnswer, FitPlan, FitQuestion
from numalign.plan.questions.scene import Kind
from numalign.plan.sources import scenes
from numalign.plan.sources.catalogue import Catalogue
from tests.unit.plan.plannedclusters import catalogue_of, kind, machine_type


def answered(catalogue: Catalogue, *kinds: Kind, **more: Any) -> FitAnswer:
    asked = FitQuestion(kinds=kinds, **{"seeds": (1, 2, 3), **more})
    return fit.answer(catalogue, asked, list(fit.needs(catalogue, asked)))


def plan(found: FitAnswer, types: str) -> FitPlan:
    return next(each for each in found.plans if each.types == types)


def test_pods_of_one_kind_take_as_many_machines_as_the_count_says() -> None:
    found = answered(catalogue_of(machine_type()), kind(pods=7, cpu="9"))
    assert (found.fits, found.best, found.least_machines) == (True, "small", 4)
    own = plan(found, "small")
    assert own.machines == {"small": 4}
    assert own.spread == fit.Spread(least=4, median=4, most=4)
    assert (own.enough_in, len(own.needs)) == (3, 3)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 15), st.integers(1, 5)), min_size=1, max_size=3), st.integers(0, 9))
def test_every_need_is_enough_for_its_order_of_arrival(wanted: list[tuple[int, int]], seed: int) -> None:
    catalogue = catalogue_of(machine_type("small", price=1), machine_type("gpu", "gpu-8", price=5))
    kinds = tuple(kind(f"k{place}", pods=pods, cpu=str(cpus)) for place, (cpus, pods) in enumerate(wanted))
    found = answered(catalogue, *kinds, seeds=(seed,))
    for way in found.plans:
        (need,) = way.needs
        made = [
            scenes.machine(each, f"{each.name}-{number}")
            for each in catalogue.types
            for number in range(need.machines.get(each.name, 0))
        ]
        opened = scene.opened(scenes.snapshot(made), seed)
        assert all(opened.arrivals.place(pod) for _, pod in scene.shuffled(scene.copies(kinds), seed))
        assert found.least_machines <= need.total
        assert found.least_cost is not None
        assert need.cost is not None
        assert found.least_cost <= need.cost


def test_the_cheapest_machines_are_not_the_fewest() -> None:
    catalogue = catalogue_of(machine_type("small", price=1), machine_type("large", "epyc-nps1", price=50))
    wanted = kind(pods=6, cpu="10")
    assert answered(catalogue, wanted).best == "large"
    cheap = answered(catalogue, wanted, by_cost=True)
    assert plan(cheap, "small").machines == {"small": 3}
    assert cheap.best in ("small", "mixed")
    assert plan(cheap, cheap.best).cost == fit.Spread(least=3, median=3, most=3)


def test_types_are_mixed_where_each_kind_of_pod_needs_its_own() -> None:
    catalogue = catalogue_of(machine_type("small", price=1), machine_type("gpu", "gpu-8", price=20))
    found = answered(catalogue, kind("a", pods=8, cpu="15"), kind("b", pods=1, cpu="4", gpu="4"), by_cost=True)
    assert not plan(found, "small").fits
    mixed, alone = plan(found, "mixed").cost, plan(found, "gpu").cost
    assert mixed is not None
    assert alone is not None
    assert mixed.most <= alone.most + 3


def test_no_machine_is_enough() -> None:
    found = answered(catalogue_of(machine_type()), kind(cpu="32"))
    assert (found.fits, found.best) == (False, "")
    assert plan(found, "small").why == "no empty machine of small admits a pod of pod"


def test_there_are_not_enough_machines() -> None:
    found = answered(catalogue_of(machine_type(count=2)), kind(pods=5, cpu="15"))
    assert not found.fits
    assert plan(found, "small").why == "a pod of pod finds no node, and no more machines can be had: small (2)"


def test_costs_need_prices() -> None:
    asked = FitQuestion(kinds=(kind(cpu="1"),), seeds=(1,), by_cost=True)
    with pytest.raises(BadObject, match="the catalogue has no prices"):
        fit.check(catalogue_of(machine_type()), asked)


def test_the_answer_depends_on_the_seeds_alone() -> None:
    catalogue, kinds = catalogue_of(machine_type()), (kind("a", pods=4, cpu="5"), kind("b", pods=3, cpu="9"))
    assert answered(catalogue, *kinds) == answered(catalogue, *kinds)


def test_a_pod_that_finds_no_node_while_machines_are_bought_may_find_one_once_all_are_there() -> None:
    """Small pods fill the first zone of a node that is alone; with more nodes they spread."""
    found = answered(
        catalogue_of(machine_type("gpu", "gpu-8", count=3)),
        kind("train", pods=6, cpu="24", gpu="3"),
        kind("serve", pods=24, cpu="6"),
        seeds=(1, 2, 3, 4, 5),
    )
    assert plan(found, "gpu").machines == {"gpu": 3}
