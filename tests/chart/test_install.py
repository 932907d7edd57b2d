"""Helm installs, upgrades, rolls back and uninstalls numalign on an embedded cluster, which has the definition of
NodeResourceTopology already: as if another chart had brought it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from numalign.deploy import values
from numalign.deploy.release import Release
from numalign.deploy.render import render
from tests.chart.helm import CHART, Helm
from tests.embedded import clusters
from tests.embedded.clusters import Up

NAMESPACE: Final = "numalign-system"
NODES: Final = 2
PLURALS: Final = {"NetworkPolicy": "networkpolicies", "ValidatingAdmissionPolicy": "validatingadmissionpolicies"}
DEFINITION: Final = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/noderesourcetopologies.topology.node.k8s.io"
)
WORDS: Final = ("-n", NAMESPACE, "--wait", "--timeout", "60s")
Object = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with clusters.up(tmp_path_factory.mktemp("installed"), f"--nodes {NODES}") as found:
        yield found


@pytest.fixture
def here(helm: Helm, cluster: Up) -> Iterator[Helm]:
    """Helm for the cluster, without a release before and after."""
    own = helm._replace(kubeconfig=cluster.kubeconfig)
    yield own
    own.run("uninstall", "numalign", "-n", NAMESPACE, "--wait", "--ignore-not-found")


def install(here: Helm, *words: str) -> str:
    return here.said("install", "numalign", str(CHART), "--create-namespace", *WORDS, *words)


def path(thing: Object) -> str:
    version, metadata = thing["apiVersion"], thing["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    where = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    kind = thing["kind"]
    return f"{root}{where}/{PLURALS.get(kind, kind.lower() + 's')}/{metadata['name']}"


def live(cluster: Up, kind: str) -> Object:
    code, found = cluster.call("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}")
    assert code == 200
    return dict(found)


def profile(cluster: Up) -> str:
    _, found = cluster.call("GET", f"/api/v1/namespaces/{NAMESPACE}/configmaps/numalign-scheduler")
    return str(json.loads(found["data"]["scheduler.json"])["profiles"][0]["schedulerName"])


def test_install_beside_a_definition_of_others_then_upgrade_rollback_and_uninstall(here: Helm, cluster: Up) -> None:
    ran = here.run("install", "numalign", str(CHART), "--create-namespace", *WORDS)
    assert ran.code != 0
    assert "cannot be imported into the current release" in ran.told
    assert live(cluster, "deployments")["items"] == []

    beside = ("--set", "crds.install=false")
    told = install(here, *beside)
    assert "schedulerName: numalign" in told
    assert "(crds.install): it has to exist already" in told

    (scheduler,) = live(cluster, "deployments")["items"]
    (agent,) = live(cluster, "daemonsets")["items"]
    assert scheduler["status"]["readyReplicas"] == 2
    assert agent["status"]["numberReady"] == NODES
    objects = render(values.read({"crds": {"install": False}}), Release(manager="Helm"))
    assert {path(each): cluster.call("GET", path(each))[0] for each in objects} == {path(each): 200 for each in objects}

    here.said("upgrade", "numalign", str(CHART), *WORDS, *beside)
    assert live(cluster, "deployments")["items"][0]["metadata"]["generation"] == scheduler["metadata"]["generation"]

    named = "scheduler.config.profiles[0].schedulerName=other,scheduler.replicas=3"
    assert "schedulerName: other\n" in here.said("upgrade", "numalign", str(CHART), *WORDS, *beside, "--set", named)
    (changed,) = live(cluster, "deployments")["items"]
    assert (profile(cluster), changed["status"]["updatedReplicas"]) == ("other", 3)

    here.said("rollback", "numalign", "1", *WORDS)
    (restored,) = live(cluster, "deployments")["items"]
    assert (profile(cluster), restored["spec"]["template"]) == ("numalign", scheduler["spec"]["template"])

    here.said("uninstall", "numalign", "-n", NAMESPACE, "--wait")
    assert {path(each): cluster.call("GET", path(each))[0] for each in objects} == {path(each): 404 for each in objects}
    assert cluster.call("GET", DEFINITION)[0] == 200


def test_a_definition_can_be_taken_over_and_outlives_the_release(here: Helm, cluster: Up) -> None:
    install(here, "--take-ownership")
    _, definition = cluster.call("GET", DEFINITION)
    assert definition["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    assert "kept due to the resource policy" in here.said("uninstall", "numalign", "-n", NAMESPACE, "--wait")
    reports = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
    code, found = cluster.call("GET", reports)
    assert (code, len(found["items"])) == (200, NODES)

    install(here)
    assert cluster.call("GET", DEFINITION)[1]["metadata"]["uid"] == definition["metadata"]["uid"]


def older(folder: Path) -> Path:
    """The chart before it had one of its values."""
    chart = shutil.copytree(CHART, folder / "older")
    written = yaml.safe_load((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    known = schema["$defs"]["Scheduler"]
    for missing in (written["scheduler"], known["properties"]):
        del missing["directModePolicy"]
    known["required"].remove("directModePolicy")
    (chart / "values.yaml").write_text(json.dumps(written))
    (chart / "values.schema.json").write_text(json.dumps(schema))
    return chart


def test_an_upgrade_to_a_chart_with_more_values_keeps_those_of_the_user(here: Helm, tmp_path: Path) -> None:
    beside = ("--set", "crds.install=false,scheduler.replicas=1")
    here.said("install", "numalign", str(older(tmp_path)), "--create-namespace", *WORDS, *beside)
    # Helm then takes the old chart's defaults for those of the new one.
    reused = here.run("upgrade", "numalign", str(CHART), *WORDS, "--reuse-values")
    assert "missing property 'directModePolicy'" in reused.told
    here.said("upgrade", "numalign", str(CHART), *WORDS, "--reset-then-reuse-values")
    values_then = json.loads(here.said("get", "values", "numalign", "-n", NAMESPACE, "-o", "json"))
    assert values_then == {"crds": {"install": False}, "scheduler": {"replicas": 1}}
