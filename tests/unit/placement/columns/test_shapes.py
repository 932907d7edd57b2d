"""Pods that are placed alike are one shape; whatever decides placement makes another."""

from typing import Any

import pytest
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import Reading
from numalign.placement.columns import shapes
from numalign.placement.columns.shapes import Shapes
from tests.unit.kubelet import made

GIB = 1 << 30


def named(pod: Pod, name: str, **annotations: str) -> Pod:
    return structs.replace(pod, metadata=ObjectMeta(name=name, uid=name, annotations=annotations))


def test_replicas_are_one_shape() -> None:
    known = Shapes()
    replicas = [named(made.pod("p", made.container("c", cpu=2)), f"replica-{number}") for number in range(3)]
    assert len({known.intern(pod).number for pod in replicas}) == 1


def test_amounts_count_and_not_how_they_are_written() -> None:
    known = Shapes()
    written = [
        made.pod("p", made.container("c", cpu=cpu, memory=memory)) for cpu, memory in ((2, "1Gi"), ("2000m", GIB))
    ]
    assert known.intern(written[0]) is known.intern(written[1])


def test_container_names_do_not_matter() -> None:
    known = Shapes()
    assert known.intern(made.pod("p", made.container("a"))) is known.intern(made.pod("p", made.container("b")))


OTHERS: dict[str, dict[str, Any]] = {
    "another amount": {"cpu": 3},
    "another class": {"burstable": True},
    "a device": {"nic": 1},
    "no memory": {"memory": None},
}


@pytest.mark.parametrize("more", OTHERS.values(), ids=OTHERS)
def test_what_decides_placement_makes_another_shape(more: dict[str, Any]) -> None:
    known = Shapes()
    plain = known.intern(made.pod("p", made.container("c")))
    assert known.intern(made.pod("p", made.container("c", **more))) is not plain


def test_an_order_of_containers_is_part_of_the_shape() -> None:
    known = Shapes()
    one, two = made.container("one", cpu=1), made.container("two", cpu=2)
    assert known.intern(made.pod("p", one, two)) is not known.intern(made.pod("p", two, one))


def test_wishes_are_part_of_the_shape() -> None:
    known = Shapes()
    pod = made.pod("p", made.container("c"))
    strict = named(pod, "p", **{"numalign.io/strictness": "require"})
    assert known.intern(strict).intent.strictness == "require"
    assert known.intern(strict) is not known.intern(pod)


def test_a_wish_that_does_not_exist_is_refused_by_name() -> None:
    pod = named(made.pod("p", made.container("c")), "p", **{"numalign.io/strictness": "maybe"})
    with pytest.raises(BadObject, match="maybe"):
        Shapes().intern(pod)


def test_totals_count_cpu_in_thousandths_and_the_rest_in_units() -> None:
    pod = made.pod("p", made.container("a", cpu="1500m"), made.container("b", cpu=2, nic=1))
    assert shapes.totals(pod) == {"cpu": 3500, "memory": 2 * GIB, made.NIC: 1}


def test_a_demand_is_read_once_per_kind_of_kubelet() -> None:
    shape = Shapes().intern(made.pod("p", made.container("c", cpu=2)))
    assert shape.demand(Reading()) is shape.demand(Reading())
    assert shape.demand(Reading()).cpus == 2


def test_shapes_that_nobody_needs_are_forgotten_and_their_numbers_not_given_again() -> None:
    known = Shapes()
    few, many = (made.pod("p", made.container("c", cpu=cpu)) for cpu in (1, 2))
    kept, forgotten = known.intern(few), known.intern(many)
    known.retain({kept.number})
    assert list(known.all) == [kept.number]
    assert known.intern(few) is kept
    assert known.intern(many).number not in (kept.number, forgotten.number)
