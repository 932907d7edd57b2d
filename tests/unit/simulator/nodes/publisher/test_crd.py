import random

import pytest

from numalign.api.decode import structs
from numalign.api.nrt import normalise, wire
from numalign.kubelet import start
from numalign.kubelet.machine import presets
from numalign.kubelet.report import report
from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import registry
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.clock import Clock
from numalign.simulator.nodes.publisher import crd as nrtcrd
from numalign.simulator.trees import Tree
from numalign.simulator.virtualtime import START
from tests.unit.simulator.nodes import stage


def server() -> Api:
    api = Api(Clock(lambda: 0.0, START, random.Random(1)), random.Random(1))
    api.create(CUSTOMRESOURCEDEFINITIONS, nrtcrd.crd())
    return api


def tree() -> Tree:
    kubelet = start.start(presets.machine("dgx-8"), stage.STATIC)
    return trees.decoded(structs.encode(normalise.encode(report.of("n1", kubelet, kubelet.initial()))))


def changed(**parts: object) -> Tree:
    return {key: value for key, value in (tree() | parts).items() if value is not None}


def test_both_versions_are_served_and_the_second_one_is_stored() -> None:
    crd = nrtcrd.crd()
    assert [each.resource.version for each in registry.custom_resources(crd)] == [wire.V1ALPHA1, wire.V1ALPHA2]
    assert [each["storage"] for each in crd["spec"]["versions"]] == [False, True]


def test_our_own_reports_keep_the_schema_and_come_back_whole() -> None:
    stored = server().create(nrtcrd.RESOURCE, tree())
    assert normalise.normalise(wire.decode(stored)) == normalise.normalise(wire.decode(tree()))


ZONE = {"name": "node-0", "type": "Node"}
AMOUNTS = {"name": "cpu", "capacity": 4, "allocatable": "4", "available": "1500m"}


@pytest.mark.parametrize("amount", [4, "4", "1500m", "-1", "2Ki", ".5", "+3", "1e3", "1.5E-2"])
def test_amounts_are_whole_numbers_or_quantities(amount: int | str) -> None:
    zone = ZONE | {"resources": [AMOUNTS | {"available": amount}]}
    assert server().create(nrtcrd.RESOURCE, changed(zones=[zone]))["zones"] == [zone]


REFUSED = {
    "no zones": {"zones": None},
    "a zone without a type": {"zones": [{"name": "node-0"}]},
    "an amount that is no quantity": {"zones": [ZONE | {"resources": [AMOUNTS | {"available": "lots"}]}]},
    "a resource without its capacity": {
        "zones": [ZONE | {"resources": [{"name": "cpu", "allocatable": 1, "available": 1}]}]
    },
    "a cost that is no number": {"zones": [ZONE | {"costs": [{"name": "node-0", "value": "10"}]}]},
    "an attribute without a value": {"attributes": [{"name": "policy"}]},
}


@pytest.mark.parametrize("parts", REFUSED.values(), ids=REFUSED)
def test_what_breaks_the_schema_is_refused(parts: dict[str, object]) -> None:
    with pytest.raises(StatusError) as refusal:
        server().create(nrtcrd.RESOURCE, changed(**parts))
    assert refusal.value.code == 422


def test_fields_that_nobody_knows_are_dropped() -> None:
    assert "spec" not in server().create(nrtcrd.RESOURCE, changed(spec={"a": 1}))
