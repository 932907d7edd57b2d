"""kubectl follows what controllers, the scheduler and the nodes of an embedded cluster do: rollouts, waits, ends."""

from __future__ import annotations

import pytest

from tests.embedded.kubectl import Kubectl, Like

DONE = 'deployment "web" successfully rolled out\n'
ONCE = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    metadata: {annotations: {numalign.io/run-seconds: "0.1"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: a}]}
"""
EVERYWHERE = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec: {containers: [{name: main, image: a}]}
"""


def deployed(kubectl: Kubectl, replicas: int = 1) -> Kubectl:
    kubectl.said(f"create deployment web --image=a:1 --replicas={replicas}")
    rolled_out(kubectl)
    return kubectl


def rolled_out(kubectl: Kubectl) -> None:
    assert kubectl("rollout status deployment/web --timeout=170s") == (0, Like(f"...{DONE}"))


def images(kubectl: Kubectl) -> str:
    return kubectl.said("get pods -o jsonpath={.items[*].spec.containers[0].image}")


def test_a_rollout_rests_while_paused_goes_on_and_back(here: Kubectl) -> None:
    assert deployed(here)("rollout pause deployment/web") == (0, "deployment.apps/web paused\n")
    here.said("set image deployment/web a=a:2")
    assert here("rollout status deployment/web --watch=false") == (
        0,
        Like("Waiting for ... 0 out of 1 new replicas ...\n"),
    )
    assert images(here) == "a:1"
    assert here("rollout resume deployment/web") == (0, "deployment.apps/web resumed\n")
    rolled_out(here)
    assert here("rollout history deployment/web") == (
        0,
        Like("deployment.apps/web\nREVISION CHANGE-CAUSE\n1 ...\n2 ...\n"),
    )
    assert "Image:\ta:1" in here.said("rollout history deployment/web --revision=1")
    assert here("rollout undo deployment/web") == (0, "deployment.apps/web rolled back\n")
    rolled_out(here)
    assert here("get deploy web -o jsonpath={.spec.template.spec.containers[0].image}") == (0, "a:1")


def test_a_restart_makes_new_pods(here: Kubectl) -> None:
    before = deployed(here).said("get pods -o name")
    assert here("rollout restart deployment/web") == (0, "deployment.apps/web restarted\n")
    rolled_out(here)
    assert here(f"wait --for=delete {before.strip()} --timeout=170s")[0] == 0
    assert before not in here.said("get pods -o name")


def test_scale_up_and_down(here: Kubectl) -> None:
    deployed(here)
    assert here("scale deployment web --replicas=3") == (0, "deployment.apps/web scaled\n")
    rolled_out(here)
    assert here("scale deployment web --replicas=0 --current-replicas=3") == (0, "deployment.apps/web scaled\n")
    assert here("wait --for=delete pod -l app=web --timeout=170s")[0] == 0
    assert here("get deploy web") == (0, Like("NAME READY UP-TO-DATE AVAILABLE AGE\nweb 0/0 0 0 ...\n"))


def test_run_and_wait_for_a_pod(here: Kubectl) -> None:
    assert here("run one --image=a") == (0, "pod/one created\n")
    assert here("wait --for=condition=Ready pod/one --timeout=170s") == (0, "pod/one condition met\n")
    assert here("wait --for=jsonpath={.status.phase}=Running pod/one --timeout=170s") == (0, "pod/one condition met\n")
    assert here("delete pod one") == (0, Like('pod "one" deleted from test-... namespace\n'))
    assert here("get pod one")[0] == 1


def test_a_wait_that_is_in_vain_ends(here: Kubectl) -> None:
    here.said('run one --image=a --overrides=\'{"spec":{"nodeSelector":{"a":"b"}}}\'')
    waited = here("wait --for=condition=Ready pod/one --timeout=1s")
    assert waited == (1, "error: timed out waiting for the condition on pods/one\n")
    assert "FailedScheduling" in here.said("describe pod one")


def test_a_job_completes(here: Kubectl) -> None:
    here.said("create -f -", ONCE)
    assert here("wait --for=condition=Complete job/once --timeout=170s") == (0, "job.batch/once condition met\n")
    assert here("get job once") == (0, Like("NAME STATUS COMPLETIONS DURATION AGE\nonce Complete 1/1 ...s ...s\n"))
    assert here("delete job once")[0] == 0
    assert here("wait --for=delete pod --all --timeout=170s")[0] == 0


def test_a_daemon_runs_on_every_node(here: Kubectl) -> None:
    here.said("apply -f -", EVERYWHERE)
    rolled = here("rollout status daemonset/everywhere --timeout=170s")
    assert rolled == (0, Like('...daemon set "everywhere" successfully rolled out\n'))
    nodes = here.said("get pods -o jsonpath={.items[*].spec.nodeName}").split()
    assert sorted(nodes) == here.said("get nodes -o jsonpath={.items[*].metadata.name}").split()


def test_delete_by_label_and_by_force(here: Kubectl) -> None:
    for name in ("one", "two", "three"):
        here.said(f"run {name} --image=a --labels=app=some")
    forced = here("delete pod one --grace-period=0 --force")
    assert forced == (0, Like('Warning: Immediate deletion ...\npod "one" force deleted from test-... namespace\n'))
    assert here("delete pods -l app=some") == (0, Like('pod "three" deleted ...\npod "two" deleted ...\n'))
    assert here("get pods") == (0, Like("No resources found in ..."))


LEFT = {"orphan": "1", "foreground": "0", "background": "0"}


@pytest.mark.parametrize("cascade", LEFT)
def test_what_a_deletion_leaves(here: Kubectl, cascade: str) -> None:
    here.said("create deployment web --image=a --replicas=0")
    here.said("wait --for=create replicaset -l app=web --timeout=170s")
    assert here(f"delete deployment web --cascade={cascade}")[0] == 0
    if cascade == "background":
        assert here("wait --for=delete replicaset --all --timeout=170s")[0] == 0
    assert str(len(here.said("get replicasets -o name").split())) == LEFT[cascade]


def test_a_namespace_goes_with_everything_in_it(here: Kubectl) -> None:
    here.said("create deployment web --image=a")
    here.said("wait --for=create pod -l app=web --timeout=170s")
    assert here(f"delete namespace {here.namespace} --timeout=170s")[0] == 0
    assert here("get pods,configmaps,replicasets,deployments") == (0, Like("No resources found in ..."))
