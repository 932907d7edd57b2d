from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from numalign.api.errors import BadObject
from numalign.plan import trace
from tests.unit.plan import traces

NODES, PODS = "openb_node_list_gpu_node.csv", "openb_pod_list_small.csv"


def test_a_trace_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = traces.small()
    assert trace.read(traces.written(tmp_path, written), "small") == written
    assert trace.lists(tmp_path) == ["small"]


def test_a_compressed_file_reads_as_a_plain_one(tmp_path: Path) -> None:
    written = traces.small()
    traces.written(tmp_path, written)
    for name in (NODES, PODS):
        (tmp_path / f"{name}.xz").write_bytes(lzma.compress((tmp_path / name).read_bytes()))
        (tmp_path / name).unlink()
    assert trace.read(tmp_path, "small") == written
    assert trace.lists(tmp_path) == ["small"]


@pytest.mark.parametrize(
    "file, line, says",
    [
        pytest.param(NODES, "node-x,-1,1024,2,T4", "line 3, cpu_milli: \"-1\" is out of range", id="negative"),
        pytest.param(NODES, f"node-x,{'9' * 5000},1024,2,T4", "line 3, cpu_milli: \"999", id="digits"),
        pytest.param(NODES, "node-x,1.5,1024,2,T4", "line 3, cpu_milli: \"1.5\" is not a whole number", id="fraction"),
        pytest.param(NODES, "node-x,,1024,2,T4", "line 3, cpu_milli: \"\" is not a whole number", id="empty"),
        pytest.param(NODES, "node-x,8000,1024,99,T4", "line 3, gpu: \"99\" is out of range; write a number of 0 to 16",
                     id="gpus"),
        pytest.param(NODES, "node-x,8000,1024,2,", "line 3, model: is empty on a node with 2 GPUs", id="no-model"),
        pytest.param(NODES, "node-0,8000,1024,2,T4", "line 3, sn: \"node-0\" is also the name of line 2", id="twice"),
        pytest.param(NODES, ",8000,1024,2,T4", "line 3, sn: is empty", id="no-name"),
        pytest.param(PODS, "pod-x,4000,1024,0,500", "line 3, gpu_milli: 500 on a pod without GPUs", id="share-of-none"),
        pytest.param(PODS, "pod-x,4000,1024,2,500", "line 3, gpu_milli: 500 on a pod with 2 GPUs", id="two-shares"),
        pytest.param(PODS, "pod-x,4000,1024,1,0", "line 3, gpu_milli: 0 on a pod with num_gpu 1", id="no-share"),
        pytest.param(PODS, "pod-x,4000,1024,1,1000,T4|H100",
                     "line 3, gpu_spec: no node has the model \"H100\"; the nodes have T4", id="unknown-model"),
    ],
)  # fmt: skip
def test_a_line_that_makes_no_sense_is_named(tmp_path: Path, file: str, line: str, says: str) -> None:
    content = {
        NODES: ["sn,cpu_milli,memory_mib,gpu,model", "node-0,8000,1024,2,T4"],
        PODS: ["name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec", "pod-0,4000,1024,1,1000,"],
    }
    content[file].append(line)
    for name, own in content.items():
        traces.lines(tmp_path / name, *own)
    with pytest.raises(BadObject) as refused:
        trace.read(tmp_path, "small")
    assert f"{file}" in str(refused.value)
    assert says in str(refused.value)


def test_missing_columns_are_listed(tmp_path: Path) -> None:
    traces.written(tmp_path, traces.small())
    traces.lines(tmp_path / PODS, "name,cpu_milli,num_gpu", "pod-0,1,1")
    with pytest.raises(BadObject, match="line 1: the columns memory_mib, gpu_milli are missing"):
        trace.read(tmp_path, "small")


def test_an_unknown_list_names_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(BadObject, match="has the pod lists small"):
        trace.read(traces.written(tmp_path, traces.small()), "large")


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"sn,cpu_milli,memory_mib,gpu,model\n"], ids=repr)
def test_a_file_without_nodes_is_refused(tmp_path: Path, content: bytes) -> None:
    traces.written(tmp_path, traces.small())
    (tmp_path / NODES).write_bytes(content)
    with pytest.raises(BadObject, match=NODES):
        trace.read(tmp_path, "small")


def test_a_broken_archive_is_refused(tmp_path: Path) -> None:
    traces.written(tmp_path, traces.small())
    (tmp_path / NODES).unlink()
    (tmp_path / f"{NODES}.xz").write_bytes(b"no archive")
    with pytest.raises(BadObject, match="cannot be read"):
        trace.read(tmp_path, "small")
