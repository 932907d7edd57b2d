"""`numalign topology`: zones, what is free in them, and the holders of the rest, for any reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from numalign.api.nrt.publishers import ManagedFields, ManagedMeta
from numalign.api.objects.node import Taint
from numalign.cli.results import nodelist, topology
from numalign.cli.results.topology import ReportedCluster, ReportWriter, _latest
from numalign.placement.explain import amounts
from numalign.scheduler.snapshot import files
from tests.unit.cli import clusterfiles
from tests.unit.cli.clusterfiles import NRT, busy, run, written
from tests.unit.scheduler.servers import on, trainer


def zone(name: str, free: int, size: int = 8, resource: str = "cpu") -> dict[str, Any]:
    amounts = {"capacity": str(size), "allocatable": str(size), "available": str(free)}
    return {"name": name, "type": "Node", "resources": [{"name": resource, **amounts}]}


def report(node: str, *zones: dict[str, Any], **more: Any) -> dict[str, Any]:
    attributes = [
        {"name": "topologyManagerPolicy", "value": "restricted"},
        {"name": "topologyManagerScope", "value": "pod"},
    ]
    plain = {"apiVersion": NRT, "kind": "NodeResourceTopology", "metadata": {"name": node}, "zones": list(zones)}
    return plain | {"attributes": attributes} | more


def told(folder: Path, items: list[dict[str, Any]], *arguments: str) -> str:
    result = run("topology", *arguments, "--snapshot", written(folder, items))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_zones_are_drawn_with_the_pods_in_them(tmp_path: Path) -> None:
    lines = told(tmp_path, busy(), "gpu-a").splitlines()
    assert "  topology  policy single-numa-node, scope container, NUMA zones 0-1" in lines
    assert "  status    Ready" in lines
    assert "zone 0  A...............  -                 AAA.         ...." in lines
    assert "A train-0   B train-1   . free" in lines


def test_the_cluster_is_a_line_per_node(tmp_path: Path) -> None:
    lines = told(tmp_path, [*busy(), *clusterfiles.node("bare", reported=False)]).splitlines()
    assert " ".join(lines[0].split()) == "NODE STATUS POLICY SCOPE ZONES CPU MEMORY GPU EFA PODS REPORT"
    assert " ".join(lines[1].split()) == "bare Ready - - - (190) (2Ti) (8) (8) 0 none"
    assert " ".join(lines[2].split()) == ("gpu-a Ready single-numa-node container 2 90+92 (1.99Ti) 1+1 4+4 2 numalign")
    assert " ".join(lines[-4].split()) == "total 554 of 570 5.99 of 6Ti 12 of 24 24 of 24 4"
    assert lines[-2].startswith("3 nodes, 2 with a usable report")


STATES = {
    "cordoned": ({"cordoned": True}, "Ready,SchedulingDisabled"),
    "broken": ({"taints": (Taint(key="gpu", value="broken", effect="NoExecute"),)}, "gpu=broken:NoExecute"),
}


@pytest.mark.parametrize("more, word", STATES.values(), ids=STATES)
def test_a_drained_or_tainted_node_does_not_look_like_the_best_one(
    more: dict[str, Any], word: str, tmp_path: Path
) -> None:
    items = [*busy(), *clusterfiles.node("gpu-c", **more)]
    assert word in told(tmp_path, items).splitlines()[3].split()
    assert word in told(tmp_path, items, "gpu-c")
    one = json.loads(told(tmp_path, items, "gpu-c", "-o", "json"))
    assert word in (one["status"], *one["taints"])


def test_a_node_that_is_not_ready_is_shown_as_kubectl_shows_it(tmp_path: Path) -> None:
    items = clusterfiles.node("gpu-a")
    items[0]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    assert told(tmp_path, items).splitlines()[1].split()[:2] == ["gpu-a", "NotReady"]


def test_the_legend_explains_the_forms_that_the_table_has_and_no_other(tmp_path: Path) -> None:
    wide = report("wide", *(zone(f"node-{number}", free=number % 9) for number in range(34)))
    many = told(tmp_path, [*clusterfiles.node("wide", reported=False), wide])
    assert "129 (<=8)" in many
    assert "a (<=b): on the node, at most b of it in one NUMA zone" in " ".join(many.split())
    assert "a+b" not in many
    few = told(tmp_path, busy())
    assert "a+b: in each NUMA zone" in few
    assert "(<=b)" not in few


ORDERS = {
    "by name": ("name", ["a", "b", "c"]),
    "most free GPUs first": ("gpu", ["c", "b", "a"]),
    "by the whole name of a resource": ("nvidia.com/gpu", ["c", "b", "a"]),
    "most pods first": ("pods", ["a", "b", "c"]),
}


@pytest.mark.parametrize("by, order", ORDERS.values(), ids=ORDERS)
def test_nodes_are_sorted_as_asked(by: str, order: list[str], tmp_path: Path) -> None:
    first = clusterfiles.node("a", trainer("p", gpus=3), trainer("q", gpus=3))
    items = [*first, *clusterfiles.node("b", trainer("r", gpus=3)), *clusterfiles.node("c")]
    for command in ("topology", "nodes"):
        result = run(command, "--sort-by", by, "--snapshot", written(tmp_path, items))
        assert [line.split()[0] for line in result.stdout.splitlines()[1:4]] == order


def test_a_column_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    result = run("topology", "--sort-by", "fpga", "--snapshot", written(tmp_path, busy()))
    assert (result.exit_code, '"fpga" is not a column; write name,' in result.stderr) == (2, True)


SELECTIONS = {
    "two names": (("gpu-b", "gpu-a"), ["node/gpu-a", "node/gpu-b"]),
    "a label": (("-l", "pool=big"), ["node/big"]),
    "another label": (("-l", "pool!=big"), ["node/gpu-a", "node/gpu-b"]),
    "a set": (("-l", "pool in (big, huge),!old"), ["node/big"]),
    "none": (("-l", "pool=none"), [""]),
}


@pytest.mark.parametrize("arguments, names", SELECTIONS.values(), ids=SELECTIONS)
def test_nodes_are_selected_by_name_and_label(arguments: tuple[str, ...], names: list[str], tmp_path: Path) -> None:
    file = written(tmp_path, [*busy(), *clusterfiles.node("big", pool="big")])
    result = run("topology", *arguments, "-o", "name", "--snapshot", file)
    assert (result.exit_code, result.stdout.rstrip("\n").split("\n")) == (0, names)


def test_a_selector_that_is_none_is_refused(tmp_path: Path) -> None:
    result = run("topology", "-l", "=x", "--snapshot", written(tmp_path, busy()))
    assert (result.exit_code, "--selector: found '='" in result.stderr) == (2, True)


def test_nodes_are_listed_with_their_settings_and_their_publisher(tmp_path: Path) -> None:
    result = run("nodes", "--snapshot", written(tmp_path, [*busy(), *clusterfiles.node("bare", reported=False)]))
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["NAME", "STATUS", "POLICY", "SCOPE", "ZONES", "FREE", "CPUS", "AGE", "PUBLISHER"]
    assert lines[1:3] == [
        ["bare", "Ready", "-", "-", "-", "(190)", "-", "none"],
        ["gpu-a", "Ready", "single-numa-node", "container", "2", "90+92", "-", "numalign"],
    ]
    assert "TAINTS" in run("nodes", "-o", "wide", "--snapshot", written(tmp_path, busy())).stdout


def test_a_watch_prints_the_nodes_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, busy())
    later = iter([[*busy(), *clusterfiles.node("gpu-c")], [*busy(), *clusterfiles.node("gpu-c")]])

    def sleep(seconds: float) -> None:
        items = next(later, None)
        if items is None:
            raise KeyboardInterrupt
        written(tmp_path, items)

    monkeypatch.setattr("numalign.cli.commands.topology.time.sleep", sleep)
    result = run("topology", "--watch", "--snapshot", file)
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("gpu-")] == ["gpu-a", "gpu-b", "gpu-c"]
    assert lines[-1].startswith("gpu-c ")


def test_devices_of_one_short_name_have_columns_of_their_own(tmp_path: Path) -> None:
    zones = zone("node-0", 8)
    extra = [
        {"name": name, "capacity": "2", "allocatable": "2", "available": "2"} for name in ("a.com/cpu", "b.com/gpu")
    ]
    items = [
        *clusterfiles.node("odd", reported=False),
        report("odd", zones | {"resources": [*zones["resources"], *extra]}),
    ]
    items[0]["status"]["allocatable"] |= {"a.com/cpu": "2", "b.com/gpu": "2"}
    assert "a.com/cpu" in told(tmp_path, items, "-o", "wide").splitlines()[0].split()


def test_a_node_without_a_report_has_totals_only(tmp_path: Path) -> None:
    text = told(tmp_path, clusterfiles.node("bare", reported=False), "bare")
    assert "without a usable report nothing is known of its zones; as a whole it has" in text
    assert "  cpu                    190 of 190 free" in text.splitlines()
    assert "  nvidia.com/gpu         8 of 8 free" in text.splitlines()


def test_a_report_without_a_node_is_shown(tmp_path: Path) -> None:
    items = [report("ghost", zone("node-0", 8))]
    assert "a report exists, but no Node of this name" in told(tmp_path, items, "ghost")
    assert "ghost (no Node)" in told(tmp_path, items)


def test_what_only_the_report_has_is_drawn(tmp_path: Path) -> None:
    lines = told(tmp_path, [report("ghost", zone("node-0", 8))], "ghost").splitlines()
    assert lines[-3:] == ["zone 0  ........", "        8 of 8 free", "node    0 of 0 free"]


def test_repaired_values_are_listed_as_found(tmp_path: Path) -> None:
    zones = zone("socket-x", 8), zone("node-99", 8)
    items = [*clusterfiles.node("odd", reported=False), report("odd", *zones)]
    doubts = json.loads(told(tmp_path, items, "odd", "-o", "json"))["report"]["doubts"]
    assert doubts[:2] == ['zones[0].name: zone-name-unknown ("socket-x")', "zones[1].name: zone-beyond-mask (node-99)"]


def test_machines_of_many_zones_stay_readable(tmp_path: Path) -> None:
    zones = [zone(f"node-{number}", free=number % 9) for number in range(34)]
    items = [*clusterfiles.node("wide", reported=False), report("wide", *zones)]
    assert "zones 0-33" in told(tmp_path, items, "wide")
    assert len(told(tmp_path, items, "wide").splitlines()) < 34 * 3
    assert "129 (<=8)" in told(tmp_path, items)


ODD: dict[str, dict[str, Any]] = {
    "no zones at all": {"zones": None},
    "zones of no type that is known": {"zones": [{"name": "tile-0", "type": "Tile"}]},
    "amounts that are none": {"zones": [zone("node-0", 4) | {"resources": [{"name": "cpu", "capacity": "many"}]}]},
    "negative amounts": {"zones": [zone("node-0", -4)]},
    "no attributes": {"attributes": None},
    "attributes of another kind": {"attributes": [{"name": "numalign.io/placements", "value": "v1;;;"}]},
    "names in other scripts": {"zones": [zone("node-0", 4, resource="example.com/größe")]},
    "names that steer terminals": {"zones": [zone("node-0", 4, resource="example.com/\x1b[31m")]},
}


@pytest.mark.parametrize("more", ODD.values(), ids=ODD)
def test_malformed_reports_are_shown_as_far_as_they_can_be_read(more: dict[str, Any], tmp_path: Path) -> None:
    items = [*clusterfiles.node("odd", reported=False), report("odd", zone("node-0", 4), **more)]
    assert "\x1b" not in told(tmp_path, items, "odd") + told(tmp_path, items)
    assert json.loads(told(tmp_path, items, "odd", "-o", "json"))["name"] == "odd"


def test_amounts_that_no_pod_explains_have_an_unknown_holder(tmp_path: Path) -> None:
    items = [*clusterfiles.node("busy", reported=False), report("busy", zone("node-0", 2))]
    text = told(tmp_path, items, "busy")
    assert "????????????" not in text
    assert "??????.." in text
    assert "? unknown holder" in text


def test_pods_whose_zones_are_not_settled_are_listed_apart(tmp_path: Path) -> None:
    coming = clusterfiles.pod(on(trainer("late", gpus=2), "gpu-a", phase="Pending"))
    text = told(tmp_path, [*clusterfiles.node("gpu-a"), coming], "gpu-a")
    assert "not settled:" in text
    assert "late  4 cpu in zone 0; 2 nvidia.com/gpu in zone 0 (predicted, not arrived yet)" in text


def test_pods_that_hold_nothing_exclusively_are_named(tmp_path: Path) -> None:
    shared = {"metadata": {"name": "web", "uid": "w"}, "spec": {"nodeName": "gpu-a", "containers": [{"name": "c"}]}}
    items = [*clusterfiles.node("gpu-a"), {"apiVersion": "v1", "kind": "Pod", **shared}]
    assert told(tmp_path, items, "gpu-a").endswith("in no zone of their own:\n  web\n")


def test_every_assumption_is_listed(tmp_path: Path) -> None:
    items = [*clusterfiles.node("plain", reported=False), report("plain", zone("node-0", 8))]
    text = told(tmp_path, items, "plain")
    assert "assumed   CPU manager policy not reported; static where CPUs are allocatable" in text


def test_the_same_as_values(tmp_path: Path) -> None:
    one = json.loads(told(tmp_path, busy(), "gpu-a", "-o", "json"))
    assert one["resources"][0]["zones"][0]["pods"] == {"default/train-0": 4}
    assert one["pods"][0]["containers"] == {"main": [[0]]}
    assert [each["name"] for each in json.loads(told(tmp_path, busy(), "-o", "json"))] == ["gpu-a", "gpu-b"]


def test_a_node_that_is_not_there_ends_with_2(tmp_path: Path) -> None:
    result = run("topology", "nowhere", "--snapshot", written(tmp_path, busy()))
    assert result.exit_code == 2
    assert "Node nowhere: is not there; the cluster has gpu-a, gpu-b" in result.stderr


def test_narrow_terminals_go_without_the_least_telling_columns(tmp_path: Path) -> None:
    file = written(tmp_path, busy())
    result = run("topology", "--snapshot", file, TTY_COMPATIBLE="1", COLUMNS="50", TERM="xterm")
    assert result.stdout.splitlines()[0].split() == ["NODE", "STATUS", "ZONES", "CPU", "GPU", "EFA"]


def test_who_wrote_a_report_and_when(tmp_path: Path) -> None:
    items = [*clusterfiles.node("plain", reported=False), report("plain", zone("node-0", 8))]
    taken = files.read(Path(written(tmp_path, items)).read_bytes(), "file")
    writer = {"plain": ReportWriter("nfd-topology-updater", "2026-01-01T00:00:00Z")}
    nodes, _ = topology.nodes(ReportedCluster(structs.replace(taken, wall="2026-01-01T02:00:30Z"), writer))
    assert nodes[0].report is not None
    assert (nodes[0].report.publisher, nodes[0].report.age) == ("nfd-topology-updater", 7230.0)
    assert "nfd-topology-updater, 2h" in nodelist.topology(nodes).text


@pytest.mark.parametrize("seconds, text", [(0, "0s"), (59.9, "59s"), (60, "1m"), (7300, "2h"), (200_000, "2d")])
def test_ages_have_one_unit(seconds: float, text: str) -> None:
    assert amounts.duration(seconds) == text


def test_the_latest_write_counts() -> None:
    writes = (
        ManagedFields("old", time="2026-01-01T00:00:00Z"),
        ManagedFields("new", time="2026-02-01T00:00:00Z"),
        ManagedFields("?"),
    )
    assert _latest(ManagedMeta(managed_fields=writes)) == ReportWriter("new", "2026-02-01T00:00:00Z")
    assert _latest(ManagedMeta()) == ReportWriter("", "")
