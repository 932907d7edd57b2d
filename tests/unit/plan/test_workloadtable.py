"""Workloads as CSV: what is read, and what is wrong with a line."""

from __future__ import annotations

import pytest

from numalign.api.errors import BadObject
from numalign.api.objects import qos, requests
from numalign.api.objects.qos import QoS
from numalign.plan.sources import workloadtable


def test_a_line_is_a_kind_of_guaranteed_pod() -> None:
    train, infer = workloadtable.read(
        "name,pods,weight,cpu,memory,nvidia.com/gpu\ntrain,6,2,8,16Gi,1\ninfer,,,500m,1Gi,\n", "work.csv"
    )
    assert (train.name, train.pods, train.weight) == ("train", 6, 2)
    assert (infer.pods, infer.weight) == (1, 1)
    assert {name: str(amount) for name, amount in requests.effective(train.pod).items()} == {
        "cpu": "8",
        "memory": "16Gi",
        "nvidia.com/gpu": "1",
    }
    assert qos.computed(train.pod) is QoS.GUARANTEED
    assert "nvidia.com/gpu" not in requests.effective(infer.pod)


@pytest.mark.parametrize(
    "text, field, why",
    [
        ("name,memory\na,1Gi\n", "line 1", "the columns cpu are missing"),
        ("", "line 1", "the columns name, cpu are missing"),
        ("name,cpu,cpu\na,1,1\n", "line 1, cpu", "is there twice"),
        ("name,cpu,gpus\na,1,1\n", "line 1, gpus", "no resource"),
        ("name,cpu\n", "", "has no line after"),
        ("name,cpu\na,1\na,2\n", "line 3, name", "also the name of line 2"),
        ("name,cpu\n,1\n", "line 2, name", "is empty"),
        ("name,cpu\na,-1\n", "line 2, cpu", "is negative"),
        ("name,cpu\na,many\n", "line 2, cpu", ""),
        ("name,cpu\na,0\n", "line 2, cpu", "is empty or 0"),
        pytest.param("name,pods,cpu\na," + "9" * 5000 + ",1\n", "line 2, pods", "is more than", id="digits"),
        pytest.param(f"name,cpu,{'example.com/a,' * 1000}b\n", "line 1", "has 1,003 columns", id="columns"),
        ("name,cpu,pods\na,1,-3\n", "line 2, pods", "not a whole number"),
        ("name,cpu,pods\na,1,99999999\n", "line 2, pods", "is more than"),
        ("name,cpu,example.com/nic\na,1,1.5\n", "line 2, example.com/nic", "not a whole number"),
        ("name,cpu\na,1,2\n", "line 2, ", "more fields than the first line"),
        ('name,cpu\n"a,1\n', "line 2", "is not CSV"),
    ],
)
def test_what_is_wrong_names_the_file_the_line_and_the_column(text: str, field: str, why: str) -> None:
    with pytest.raises(BadObject) as caught:
        workloadtable.read(text, "work.csv")
    assert (caught.value.name, caught.value.field) == ("work.csv", field)
    assert why in caught.value.why
