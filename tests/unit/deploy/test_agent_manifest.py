"""The DaemonSet in the examples: the agent reads three folders of the host and may do nothing else there."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from numalign.api.decode import yamltext
from numalign.cli.main import app
from numalign.deploy import rights

FILE = Path(__file__).parents[3] / "examples/agent.yaml"


@pytest.fixture
def pod() -> dict[str, Any]:
    (document,) = yamltext.documents(FILE.read_text(), FILE.name)
    assert isinstance(document.value, dict)
    spec: dict[str, Any] = document.value["spec"]["template"]["spec"]
    return spec


def test_it_has_the_account_that_has_the_rights(pod: dict[str, Any]) -> None:
    assert pod["serviceAccountName"] == rights.AGENT_ACCOUNT.name


def test_it_shares_no_namespace_with_the_node_and_has_no_capability(pod: dict[str, Any]) -> None:
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    (container,) = pod["containers"]
    context = container["securityContext"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"]) == (False, True)
    assert "privileged" not in context


def test_it_changes_no_file_of_the_host(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    places = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"]}
    assert set(places.values()) == {"/sys", "/proc", "/var/lib/kubelet"}
    assert {each["name"]: (each["mountPath"], each["readOnly"]) for each in container["volumeMounts"]} == {
        name: (f"/host{path}", True) for name, path in places.items()
    }


def test_the_command_line_is_one_of_ours(pod: dict[str, Any]) -> None:
    (container,) = pod["containers"]
    program, *words = container["command"]
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert (program, shown.exit_code, "--host-root" in shown.stdout) == ("numalign", 0, True)
