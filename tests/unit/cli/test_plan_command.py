"""`numalign plan`: exit codes, formats and errors of its questions."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from typer.testing import CliRunner

from numalign.cli.main import app
from tests.machinescenes import node
from tests.unit.plan import traces
from tests.unit.plan.plannedclusters import STATIC
from tests.unit.scheduler.servers import owned, trainer

MACHINES = {
    "apiVersion": "numalign.io/v1alpha1",
    "kind": "MachineCatalogue",
    "currency": "EUR",
    "machines": [{"name": "small", "machine": "2x16", "price": 1.5, "count": 2, "kubelet": STATIC}],
}


@pytest.fixture
def catalogue(tmp_path: Path) -> str:
    file = tmp_path / "machines.yaml"
    file.write_text(yaml.safe_dump(MACHINES, sort_keys=False))
    return str(file)


@pytest.fixture
def snapshot(tmp_path: Path) -> str:
    running = [owned(trainer(f"t-{number}", gpus=4), "set-1") for number in range(2)]
    items = [*node("a", running=running), *node("b")]
    file = tmp_path / "cluster.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def run(*arguments: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(app, ["plan", *arguments])
    return found.exit_code, found.stdout, found.stderr


def test_capacity_counts_by_zone_and_names_what_stops_the_next_pod(catalogue: str) -> None:
    code, text, _ = run("capacity", "--catalogue", catalogue, "--requests", "cpu=8,memory=1Gi", "-o", "wide")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert code == 0
    assert "cpu=8,memory=1Gi 6 2" in lines
    assert any(line.startswith("small-0, small-1 3 0: 1, 1: 2") for line in lines)
    assert "one more core in each zone 8 +2 2" in lines


def test_capacity_in_every_format(catalogue: str) -> None:
    asked = ("capacity", "--catalogue", catalogue, "--requests", "cpu=8,memory=1Gi@2", "--requests", "cpu=1", "-o")
    as_json, as_yaml = json.loads(run(*asked, "json")[1]), yaml.safe_load(run(*asked, "yaml")[1])
    assert as_json == as_yaml
    assert as_json["kinds"][0]["roomyNodes"] == 2
    assert as_json["mix"]["stoppedBy"] == "cpu=8,memory=1Gi"
    head, *lines = run(*asked, "csv")[1].splitlines()
    assert head.startswith("kind,node,count,bound,reason")
    assert len(lines) == 4


def test_a_workload_that_does_not_fit_ends_with_1(catalogue: str, tmp_path: Path) -> None:
    work = tmp_path / "work.csv"
    work.write_text("name,pods,cpu,memory\nbig,5,15,1Gi\n")
    code, text, _ = run("capacity", "--catalogue", catalogue, "-f", str(work))
    assert code == 1
    assert "big: 1 pod of the workload without a node" in text
    assert run("fit", "--catalogue", catalogue, "-f", str(work))[0] == 1


def test_fit_names_machines_costs_and_the_bound(catalogue: str) -> None:
    code, text, _ = run("fit", "--catalogue", catalogue, "--requests", "cpu=9,memory=1Gi", "--objective", "cost")
    assert code == 0
    assert "best: small: 1 x small for 1 pods" in text
    assert "no plan has fewer than 1 machines, or costs less than 0.75 EUR" in text


def test_fit_chooses_among_machines_that_are_named() -> None:
    code, text, _ = run(
        "fit", "--machine", "2x16", "--machine", "edge-1", "--requests", "cpu=9,memory=1Gi", "-o", "csv"
    )
    assert code == 0
    assert text.splitlines()[0] == "types,seed,machines,at-once,machines-2x16,machines-edge-1"


def test_what_if_says_who_loses_and_ends_with_1(snapshot: str) -> None:
    code, text, _ = run("what-if", "--snapshot", snapshot, "--drain", "a", "--drain", "b")
    assert code == 1
    assert "ReplicaSet" in text
    assert "2 of 2" in text
    assert run("what-if", "--snapshot", snapshot, "--drain", "a")[0] == 0


def test_resize_says_that_exclusive_cpus_are_not_resized(snapshot: str) -> None:
    code, text, _ = run("resize", "t-0", "--snapshot", snapshot, "--requests", "cpu=6")
    assert code == 1
    assert 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"' in text


def test_a_sweep_goes_on_where_it_was(snapshot: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("sweep", "--snapshot", snapshot, "--vary", "lose=0,1", "--out", str(out), "--workers", "1")
    code, first, said = run(*asked, "--seeds", "1", "-o", "csv")
    assert (code, "2 runs, 2 of them new" in said) == (0, True)
    code, more, said = run(*asked, "--seeds", "1-2", "-o", "csv")
    assert (code, "4 runs, 2 of them new" in said) == (0, True)
    assert set(first.splitlines()) <= set(more.splitlines())
    assert (out / "results.csv").read_text() == more


def test_the_machines_and_pods_of_a_trace(tmp_path: Path) -> None:
    folder = traces.written(tmp_path, traces.small())
    code, text, _ = run("capacity", "--trace", str(folder), "--trace-list", "small", "--no-gains", "-o", "json")
    assert code in (0, 1)
    assert json.loads(text)["kinds"]


@pytest.mark.parametrize(
    "arguments, why",
    [
        (("capacity", "--requests", "cpu=-1"), "is negative"),
        (("capacity", "--requests", "cpu=1@x"), "write a whole number after @"),
        (("capacity",), "give --requests or -f"),
        (("capacity", "--at", "noon", "--requests", "cpu=1"), "--at needs --recording"),
        (("capacity", "--catalogue", "a", "--trace", "b", "--requests", "cpu=1"), "are exclusive"),
        (("fit", "--requests", "cpu=1"), "give either --catalogue or --machine"),
        (("fit", "--machine", "2x16", "--requests", "cpu=1", "--objective", "cost"), "has no prices"),
        (("fit", "--machine", "2x16", "--requests", "cpu=1", "--seeds", "x"), "is no seed"),
    ],
)
def test_wrong_use_ends_with_2(arguments: tuple[str, ...], why: str) -> None:
    code, _, said = run(*arguments)
    assert code == 2
    assert why in said


@pytest.mark.parametrize(
    "arguments, why",
    [
        ((), "nothing would be different"),
        (("--drain", "ghost"), "Node ghost: is not in the cluster"),
        (("--lose", "9"), "is not a whole number of 0 to 2"),
        (("--lose", "pool=x"), "matches no node"),
        (("--scoring", "Best"), "is not one of"),
        (("--kubelet-version", "0.1"), "is not a kubelet that is known here"),
    ],
)
def test_changes_that_make_no_sense_end_with_2(snapshot: str, arguments: tuple[str, ...], why: str) -> None:
    code, _, said = run("what-if", "--snapshot", snapshot, *arguments)
    assert code == 2
    assert why in said


def test_a_catalogue_that_contradicts_itself_names_the_line(catalogue: str) -> None:
    path = Path(catalogue)
    path.write_text(path.read_text().replace("price: 1.5", "price: -1.5"))
    code, _, said = run("fit", "--catalogue", catalogue, "--requests", "cpu=1")
    assert code == 2
    assert "line 7, machines[0].price: -1.5 is not between 0" in said
