"""Pods of several containers: where they fit, and what is said where they do not (catalogue 13.1 to 13.3, tables).

Every row gives the free amounts of both zones on the target and on the other nodes. Totals of the other nodes are at
least as large as the request, so a scheduler that knows only totals could choose them. The ids are those of the
reference operator's tests."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Struct

from tests.embedded.acceptance import site as sites
from tests.embedded.acceptance.site import QoS, Scope, Site


class Row(Struct, frozen=True, kw_only=True):
    id: str
    scope: Scope
    request: tuple[str, ...]
    target: tuple[str, str] | None = None
    """None: all of the node is free."""
    others: tuple[str, str]
    qos: QoS = "guaranteed"
    init: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.id

    @property
    def spec(self) -> sites.Tree:
        return sites.spec(*self.request, qos=self.qos, init=self.init)


class Refused(Row, frozen=True, kw_only=True):
    text: str = ""

    @property
    def expected(self) -> str:
        return self.text or f"cannot align {self.scope}"


def pairs(id: str, request: str, others: str) -> list[Row]:
    """A pod of one container, under both scopes."""
    ids = dict(zip(("container", "pod"), id.split("/"), strict=True))
    return [
        Row(id=ids["container"], scope="container", request=(request,), others=(others, others)),
        Row(id=ids["pod"], scope="pod", request=(request,), others=(others, others)),
    ]


PAGES = "hp2M:32Mi hp1G:1Gi"
TWICE = (f"4/4Gi {PAGES}", f"4/4Gi {PAGES}")
THREE = ("4/4Gi", "4/4Gi", "8/4Gi")
FITS = [
    *pairs("48713/50156", "4/4Gi", "3/3Gi"),
    *pairs("50158/50157", "4/4Gi hp2M:256Mi", "4/4Gi hp2M:192Mi"),
    Row(id="85792", scope="pod", request=("16/16Gi",), others=("16/8Gi", "16/8Gi")),
    Row(id="85793", scope="pod", request=("16/16Gi",), others=("8/16Gi", "8/16Gi")),
    Row(
        id="47575",
        scope="container",
        request=("6/6Gi", "12/8Gi"),
        others=("2/2Gi", "16/12Gi"),
        target=("6/6Gi", "12/8Gi"),
    ),
    Row(
        id="47577",
        scope="pod",
        request=("6/4Gi", "8/12Gi"),
        others=("14/6Gi", "10/20Gi"),
        target=("2/2Gi", "14/16Gi"),
    ),
    Row(
        id="50183",
        scope="container",
        request=("6/6Gi hp2M:96Mi", "12/8Gi hp2M:128Mi"),
        others=("2/2Gi hp2M:0", "16/12Gi hp2M:192Mi"),
        target=("6/6Gi hp2M:96Mi", "12/8Gi hp2M:128Mi"),
    ),
    Row(
        id="50184",
        scope="pod",
        request=("6/4Gi hp2M:32Mi", "8/12Gi hp2M:128Mi"),
        others=("14/10Gi hp2M:32Mi", "10/16Gi hp2M:144Mi"),
        target=("2/2Gi hp2M:0", "14/16Gi hp2M:160Mi"),
    ),
    Row(id="85000", scope="container", request=THREE, others=("12/8Gi", "4/4Gi"), target=("8/8Gi", "8/4Gi")),
    Row(
        id="85001",
        scope="container",
        request=TWICE,
        others=(f"1/4Gi {PAGES}", f"7/4Gi {PAGES}"),
        target=(f"4/4Gi {PAGES}", f"4/4Gi {PAGES}"),
    ),
    Row(
        id="85002",
        scope="container",
        request=TWICE,
        others=(f"4/1Gi {PAGES}", f"4/7Gi {PAGES}"),
        target=(f"4/4Gi {PAGES}", f"4/4Gi {PAGES}"),
    ),
    Row(
        id="85003",
        scope="container",
        request=TWICE,
        others=("1/4Gi hp2M:16Mi hp1G:1Gi", "7/4Gi hp2M:48Mi hp1G:1Gi"),
        target=(f"4/4Gi {PAGES}", f"4/4Gi {PAGES}"),
    ),
    Row(
        id="85004",
        scope="container",
        request=TWICE,
        others=("1/4Gi hp2M:32Mi hp1G:0", "7/4Gi hp2M:32Mi hp1G:2Gi"),
        target=(f"4/4Gi {PAGES}", f"4/4Gi {PAGES}"),
    ),
    Row(
        id="54021",
        scope="container",
        request=("4/4Gi dev1:2 dev3:1", "4/4Gi dev2:2"),
        others=("1/4Gi dev1:1 dev2:0 dev3:1", "7/4Gi dev1:1 dev2:2 dev3:0"),
        target=("4/4Gi dev1:2 dev2:0 dev3:1", "4/4Gi dev1:0 dev2:2 dev3:0"),
    ),
    Row(
        id="85005",
        scope="container",
        init=("2/2Gi",),
        request=THREE,
        others=("12/8Gi", "4/4Gi"),
        target=("8/8Gi", "8/4Gi"),
    ),
    Row(
        id="85006",
        scope="container",
        init=("8/4Gi", "8/4Gi", "8/4Gi"),
        request=THREE,
        others=("12/8Gi", "4/4Gi"),
        target=("8/8Gi", "8/4Gi"),
    ),
    Row(
        id="54018",
        scope="container",
        request=("6/6Gi dev1:3", "12/8Gi dev1:4"),
        others=("6/2Gi dev1:2", "12/12Gi dev1:3"),
        target=("6/6Gi dev1:3", "12/8Gi dev1:4"),
    ),
    Row(
        id="54016",
        scope="pod",
        request=("8/4Gi dev1:5",),
        others=("6/4Gi dev1:3", "6/4Gi dev1:3"),
        target=("1/1Gi dev1:0", "8/4Gi dev1:5"),
    ),
    Row(
        id="54025",
        scope="container",
        qos="besteffort",
        request=("dev1:5 dev2:2", "dev2:1 dev3:3"),
        others=("6/4Gi dev1:1 dev2:0 dev3:0", "6/4Gi dev1:1 dev2:0 dev3:0"),
        target=("dev1:1 dev2:3 dev3:3", "dev1:5 dev2:2 dev3:0"),
    ),
    Row(
        id="55431",
        scope="pod",
        qos="besteffort",
        request=("dev1:5 dev2:2",),
        others=("dev1:1 dev2:0", "dev1:1 dev2:0"),
        target=("dev1:0 dev2:1", "dev1:5 dev2:2"),
    ),
    Row(
        id="55450",
        scope="pod",
        qos="burstable",
        request=("cpu:1 dev2:2 dev3:3 eph:32Mi", "eph:32Mi"),
        others=("dev2:1 dev3:0", "dev2:1 dev3:0"),
        target=("dev2:2 dev3:3", "dev2:1 dev3:0"),
    ),
    Row(
        id="54024",
        scope="container",
        qos="burstable",
        request=("cpu:1 dev1:5 dev2:2 eph:32Mi", "dev2:1 dev3:3 eph:32Mi"),
        others=("dev1:1 dev2:0 dev3:0", "dev1:1 dev2:0 dev3:0"),
        target=("dev1:0 dev2:1 dev3:3", "dev1:5 dev2:2 dev3:0"),
    ),
]
DEPLOYED = {"48713": "47583", "50158": "50159", "50156": "50165", "50157": "50182"}
"""The same requests as Deployments."""

NOTHING = ("1/1Gi", "1/1Gi")
WAITS = [
    Refused(
        id="85007",
        scope="container",
        request=(f"5/4Gi {PAGES}", f"5/4Gi {PAGES}"),
        target=(f"1/8Gi {PAGES}", f"9/8Gi {PAGES}"),
        others=NOTHING,
    ),
    Refused(
        id="85008",
        scope="container",
        request=(f"4/7Gi {PAGES}", f"4/7Gi {PAGES}"),
        target=(f"8/1Gi {PAGES}", f"8/13Gi {PAGES}"),
        others=NOTHING,
    ),
    Refused(
        id="85009",
        scope="container",
        request=("4/4Gi hp2M:16Mi hp1G:1Gi", "4/4Gi hp2M:48Mi hp1G:1Gi"),
        target=(f"4/4Gi {PAGES}", f"4/4Gi {PAGES}"),
        others=NOTHING,
    ),
    Refused(
        id="85011",
        scope="container",
        request=("4/4Gi hp2M:32Mi", "4/4Gi hp2M:32Mi hp1G:2Gi"),
        target=(f"4/4Gi {PAGES}", f"4/4Gi {PAGES}"),
        others=NOTHING,
    ),
    Refused(
        id="74257",
        scope="pod",
        qos="burstable",
        request=("4300m/1Gi", "10/1Gi", "3500m/1Gi"),
        target=("8/8Gi", "7/8Gi"),
        others=NOTHING,
        text="Insufficient cpu",
    ),
    Refused(
        id="54020",
        scope="container",
        request=("4/4Gi dev2:2", "4/4Gi dev1:2 dev3:2"),
        target=("8/8Gi dev1:1 dev2:0 dev3:2", "8/8Gi dev1:1 dev2:2 dev3:0"),
        others=NOTHING,
    ),
    Refused(
        id="54019",
        scope="container",
        request=("5/4Gi dev1:3", "5/4Gi dev1:2"),
        target=("5/4Gi dev1:1", "10/8Gi dev1:4"),
        others=NOTHING,
    ),
    Refused(
        id="54017",
        scope="pod",
        request=("8/4Gi dev1:3", "8/4Gi dev2:2"),
        target=("8/4Gi dev1:3 dev2:0", "8/4Gi dev1:0 dev2:2"),
        others=NOTHING,
    ),
    Refused(
        id="55430",
        scope="pod",
        qos="besteffort",
        request=("dev1:3 dev2:4",),
        target=("dev1:1 dev2:2", "dev1:2 dev2:2"),
        others=("dev1:0", "dev1:0"),
    ),
    Refused(
        id="55429",
        scope="pod",
        qos="burstable",
        request=("cpu:1 dev1:3 dev2:4",),
        target=("dev1:1 dev2:2", "dev1:2 dev2:2"),
        others=("dev1:0", "dev1:0"),
    ),
    Refused(
        id="54023",
        scope="container",
        qos="besteffort",
        request=("dev2:2", "dev1:2 dev3:2"),
        target=("dev1:1 dev2:0 dev3:2", "dev1:1 dev2:2 dev3:0"),
        others=("dev1:0", "dev1:0"),
    ),
    Refused(
        id="54022",
        scope="container",
        qos="burstable",
        request=("cpu:4 dev2:2", "cpu:4 dev1:2 dev3:2"),
        target=("dev1:1 dev2:0 dev3:2", "dev1:1 dev2:2 dev3:0"),
        others=("dev1:0", "dev1:0"),
    ),
]


def prepare(site: Site, row: Row) -> str:
    """Leave the free amounts of the row; the target."""
    pool = site.pool(row.scope)
    if row.target is not None:
        site.pad(pool.target, *row.target)
    for name in pool.others:
        site.pad(name, *row.others)
    return pool.target


def rows(found: list[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", found, ids=str)


@rows(FITS)
def test_the_pod_runs_on_the_only_node_whose_zones_hold_it(site: Site, row: Row) -> None:
    target = prepare(site, row)
    before = site.free(target)
    site.pod("new", row.spec, row.scope, annotations=sites.ends("init"))
    site.runs("new", target)
    exclusive = row.request if row.qos == "guaranteed" else tuple(map(devices_of, row.request))
    site.consumed(target, exclusive, before)


@rows([row for row in FITS if row.id in DEPLOYED])
def test_the_pod_of_a_deployment_runs_there_too(site: Site, row: Row) -> None:
    target = prepare(site, row)
    site.workload("Deployment", "new", row.spec, row.scope)
    assert site.all_run("new", 1) == [target]


@rows(WAITS)
def test_a_pod_that_no_zone_holds_waits_with_the_reason(site: Site, row: Refused) -> None:
    target = prepare(site, row)
    before = site.free(target)
    site.pod("new", row.spec, row.scope)
    message = site.waits("new", row.expected)
    assert ("cannot align" in message) == ("cannot align" in row.expected)
    assert site.free(target) == before


def devices_of(request: str) -> str:
    return " ".join(word for word in request.split() if word.startswith("dev"))
