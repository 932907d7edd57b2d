from typing import Any

import pytest

from numalign.api.decode import decode
from numalign.api.objects.node import Taint
from numalign.api.objects.pod import Pod
from numalign.simulator.nodes.kubelet import loop

LABELS = {"zone": "a", "cores": "16"}


def reason(spec: dict[str, Any], *taints: Taint) -> str:
    spec = {"nodeName": "n1", **spec}
    lacking = loop.misfit(decode.decode(Pod, {"spec": spec}), LABELS, taints)
    return lacking.reason if lacking else ""


def term(*expressions: tuple[str, str, list[str]], field: str = "matchExpressions") -> dict[str, Any]:
    return {field: [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    inner = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": inner}}


FITS = {
    "nothing asked": {},
    "a selector that matches": {"nodeSelector": {"zone": "a"}},
    "In": required(term(("zone", "In", ["a", "b"]))),
    "NotIn a label that is missing": required(term(("disk", "NotIn", ["ssd"]))),
    "Exists": required(term(("zone", "Exists", []))),
    "DoesNotExist": required(term(("disk", "DoesNotExist", []))),
    "Gt": required(term(("cores", "Gt", ["8"]))),
    "Lt": required(term(("cores", "Lt", ["32"]))),
    "the node's name": required(term(("metadata.name", "In", ["n1"]), field="matchFields")),
    "one term of two": required(term(("zone", "In", ["b"])), term(("zone", "In", ["a"]))),
}
MISFITS = {
    "a selector that does not match": {"nodeSelector": {"zone": "b"}},
    "a selector for a missing label": {"nodeSelector": {"disk": "ssd"}},
    "In": required(term(("zone", "In", ["b"]))),
    "NotIn": required(term(("zone", "NotIn", ["a"]))),
    "Exists": required(term(("disk", "Exists", []))),
    "DoesNotExist": required(term(("zone", "DoesNotExist", []))),
    "Gt what is no number": required(term(("zone", "Gt", ["8"]))),
    "Gt": required(term(("cores", "Gt", ["16"]))),
    "Lt": required(term(("cores", "Lt", ["16"]))),
    "another node's name": required(term(("metadata.name", "In", ["n2"]), field="matchFields")),
    "a term that asks for nothing": required({}),
    "no term at all": required(),
    "both expressions of a term must hold": required(term(("zone", "In", ["a"]), ("cores", "In", ["8"]))),
    "an operator nobody knows": required(term(("zone", "Like", ["a"]))),
}


@pytest.mark.parametrize("spec", FITS.values(), ids=FITS)
def test_a_pod_that_belongs_here_is_let_in(spec: dict[str, Any]) -> None:
    assert reason(spec) == ""


@pytest.mark.parametrize("spec", MISFITS.values(), ids=MISFITS)
def test_a_pod_that_belongs_elsewhere_is_refused(spec: dict[str, Any]) -> None:
    assert reason(spec) == "NodeAffinity"


@pytest.mark.parametrize(
    "taint, toleration, refused",
    [
        pytest.param(Taint(key="k", effect="NoExecute"), {}, True, id="not tolerated"),
        pytest.param(Taint(key="k", effect="NoSchedule"), {}, False, id="not the kubelet's business"),
        pytest.param(Taint(key="k", effect="NoExecute"), {"operator": "Exists"}, False, id="everything tolerated"),
        pytest.param(Taint(key="k", effect="NoExecute"), {"key": "k", "operator": "Exists"}, False, id="the key"),
        pytest.param(Taint(key="k", value="v", effect="NoExecute"), {"key": "k", "value": "v"}, False, id="the value"),
        pytest.param(Taint(key="k", value="v", effect="NoExecute"), {"key": "k", "value": "w"}, True, id="another"),
        pytest.param(
            Taint(key="k", effect="NoExecute"), {"key": "k", "effect": "NoSchedule"}, True, id="another effect"
        ),
    ],
)
def test_of_taints_the_kubelet_knows_no_execute(taint: Taint, toleration: dict[str, str], refused: bool) -> None:
    spec = {"tolerations": [toleration]} if toleration else {}
    assert reason(spec, taint) == ("TaintToleration" if refused else "")
