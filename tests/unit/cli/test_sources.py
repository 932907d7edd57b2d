"""What a command says when it cannot reach a cluster: which one, why, and what to do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from numalign.cli.main import app


class Stranger(BaseHTTPRequestHandler):
    """A web server that is no API server."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *given: object) -> None: ...


@pytest.fixture
def stranger() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def topology(folder: Path, server: str, *options: str, **environment: str) -> Result:
    tree = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": {"cluster": "c"}} for name in ("one", "two")],
        "current-context": "one",
    }
    (folder / "config").write_text(json.dumps(tree))
    known = {"KUBECONFIG": str(folder / "config"), "NUMALIGN_CLUSTERS": str(folder / "clusters")}
    return CliRunner().invoke(app, ["topology", *options], env=known | environment)


def test_a_server_without_tls_is_not_operation_not_permitted(tmp_path: Path, stranger: str) -> None:
    said = topology(tmp_path, f"https://{stranger}")
    assert said.exit_code == 2
    assert f"no TLS connection to {stranger}: " in said.stderr
    assert "does the server speak TLS?" in said.stderr


def test_a_server_that_is_no_api_server_is_named(tmp_path: Path, stranger: str) -> None:
    said = topology(tmp_path, f"http://{stranger}")
    assert said.stderr.startswith(f"numalign: Cluster http://{stranger}: cannot be asked: list nodes: 404: ")
    assert "is this a Kubernetes API server?" in said.stderr
    assert "<" not in said.stderr


def test_a_context_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    said = topology(tmp_path, "http://127.0.0.1:1", "--context", "nope")
    assert '--context: no context "nope"; there are: one, two' in said.stderr


def test_without_any_kubeconfig_the_way_to_one_is_named(tmp_path: Path) -> None:
    said = topology(tmp_path, "http://127.0.0.1:1", KUBECONFIG="", HOME=str(tmp_path / "empty"))
    assert (said.exit_code, "give --kubeconfig, or set KUBECONFIG" in said.stderr) == (2, True)
