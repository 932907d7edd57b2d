"""kubectl changes objects of an embedded cluster: apply in both ways, patch, edit, replace, label, create, delete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.embedded.kubectl import Kubectl, Like

SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  color: {color}
"""


def settings(color: str = "blue") -> str:
    return SETTINGS.format(color=color)


def color(kubectl: Kubectl) -> str:
    return kubectl.said("get configmap settings -o jsonpath={.data.color}")


def test_apply_creates_changes_and_leaves_alone(here: Kubectl) -> None:
    assert here("apply -f -", settings()) == (0, "configmap/settings created\n")
    assert here("apply -f -", settings()) == (0, "configmap/settings unchanged\n")
    assert here("apply -f -", settings("red")) == (0, "configmap/settings configured\n")
    assert here("apply -f -", settings("red").replace("color: red", "size: big")) == (0, Like("...configured\n"))
    assert json.loads(here.said("get configmap settings -o json"))["data"] == {"size": "big"}


def test_apply_of_a_whole_folder(here: Kubectl, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(settings().replace("name: settings", f"name: {name}"))
    assert here(f"apply -f {tmp_path}") == (0, "configmap/a created\nconfigmap/b created\n")
    assert here(f"delete -f {tmp_path}") == (0, Like('configmap "a" deleted from ...\nconfigmap "b" deleted ...\n'))


def test_diff_shows_what_apply_would_change(here: Kubectl) -> None:
    here.said("apply -f -", settings())
    assert here("diff -f -", settings()) == (0, "")
    assert here("diff -f -", settings("red")) == (1, Like("diff ...-  color: blue\n+  color: red\n..."))
    assert color(here) == "blue"


def test_a_dry_run_changes_nothing(here: Kubectl) -> None:
    assert here("apply --dry-run=server -f -", settings()) == (0, "configmap/settings created (server dry run)\n")
    assert here("get configmap settings") == (
        1,
        Like('Error from server (NotFound): configmaps "settings" not found\n'),
    )


def test_server_side_apply_knows_who_owns_what(here: Kubectl) -> None:
    apply = "apply --server-side -f -"
    assert here(apply, settings()) == (0, "configmap/settings serverside-applied\n")
    code, text = here(f"{apply} --field-manager=other", settings("red"))
    assert (code, text.splitlines()[0]) == (
        1,
        'error: Apply failed with 1 conflict: conflict with "kubectl": .data.color',
    )
    assert here(f"{apply} --field-manager=other --force-conflicts", settings("red"))[0] == 0
    assert color(here) == "red"
    assert 'conflict with "other": .data.color' in here(apply, settings())[1]


def test_server_side_apply_takes_over_from_client_side_apply(here: Kubectl) -> None:
    here.said("apply -f -", settings())
    assert here("apply --server-side -f -", settings("red")) == (0, "configmap/settings serverside-applied\n")
    assert color(here) == "red"


CREATED = {
    "namespace other-{}": "namespace/other-... created",
    "configmap c --from-literal=a=b": "configmap/c created",
    "secret generic s --from-literal=a=b": "secret/s created",
    "serviceaccount robot": "serviceaccount/robot created",
    "role r --verb=get --resource=pods": "role.rbac.authorization.k8s.io/r created",
    "rolebinding rb --role=r --serviceaccount=default:robot": "rolebinding.rbac.authorization.k8s.io/rb created",
    "clusterrole cr-{} --verb=get --resource=nodes": "clusterrole.rbac.authorization.k8s.io/cr-... created",
    "deployment d --image=a": "deployment.apps/d created",
    "job j --image=a": "job.batch/j created",
    "quota q --hard=cpu=1": "...no controller acts on them\nresourcequota/q created",
    "poddisruptionbudget p --selector=app=a --min-available=1": "poddisruptionbudget.policy/p created",
    "priorityclass pc-{} --value=7": "priorityclass.scheduling.k8s.io/pc-... created",
    "service clusterip s --tcp=80:80": "service/s created",
}


@pytest.mark.parametrize("line, text", CREATED.items(), ids=[line.split()[0] for line in CREATED])
def test_what_create_makes(here: Kubectl, line: str, text: str) -> None:
    assert here(f"create {line.format(here.namespace)}") == (0, Like(f"{text}\n"))


def test_what_is_there_is_not_created_again(here: Kubectl) -> None:
    here.said("create configmap c")
    assert here("create configmap c") == (1, 'error: failed to create configmap: configmaps "c" already exists\n')


def test_generated_names_differ(here: Kubectl) -> None:
    made = settings().replace("name: settings", "generateName: some-")
    assert len({here.said("create -o name -f -", made) for _ in range(2)}) == 2


def test_labels_and_annotations(here: Kubectl) -> None:
    here.said("create configmap c")
    assert here("label configmap c tier=front") == (0, "configmap/c labeled\n")
    assert here("label configmap c tier=back") == (1, Like("error: 'tier' already has a value (front), and ...\n"))
    assert here("label configmap c tier=back --overwrite") == (0, "configmap/c labeled\n")
    assert here("get configmap -l tier=back -o name") == (0, "configmap/c\n")
    assert here("label configmap c tier-") == (0, "configmap/c unlabeled\n")
    assert here("annotate configmap c note=hello") == (0, "configmap/c annotated\n")
    assert here("get configmap c -o jsonpath={.metadata.annotations.note}") == (0, "hello")


PATCHES = {
    "strategic": '{"data":{"color":"red"}}',
    "merge": '{"data":{"color":"red"}}',
    "json": '[{"op":"replace","path":"/data/color","value":"red"}]',
}


@pytest.mark.parametrize("how", PATCHES)
def test_patches_of_every_type(here: Kubectl, how: str) -> None:
    here.said("create -f -", settings())
    assert here(f"patch configmap settings --type={how} -p '{PATCHES[how]}'") == (0, "configmap/settings patched\n")
    assert color(here) == "red"
    assert here(f"patch cm settings --type={how} -p '{PATCHES[how]}'") == (0, Like("... patched (no change)\n"))


def test_patches_of_parts(here: Kubectl) -> None:
    here.said("create deployment web --image=a --replicas=0")
    patched = here('patch deploy web --subresource=scale --type=merge -p \'{"spec":{"replicas":1}}\'')
    assert patched == (0, "scale.autoscaling/web patched\n")
    assert here("get deploy web -o jsonpath={.spec.replicas}") == (0, "1")


def test_edit_runs_the_editor_on_the_object(here: Kubectl) -> None:
    here.said("create -f -", settings())
    assert here("edit configmap settings", EDITOR="sed -i s/blue/red/") == (0, "configmap/settings edited\n")
    assert color(here) == "red"
    assert here("edit configmap settings", EDITOR="true") == (0, "Edit cancelled, no changes made.\n")


def test_replace_needs_the_latest_version(here: Kubectl) -> None:
    here.said("create -f -", settings())
    old = here.said("get configmap settings -o yaml").replace("blue", "red")
    assert here("replace -f -", old) == (0, "configmap/settings replaced\n")
    code, text = here("replace -f -", old.replace("red", "green"))
    assert (code, "the object has been modified; please apply your changes" in text) == (1, True)


def test_set_image_and_set_resources(here: Kubectl) -> None:
    here.said("create deployment web --image=a:1 --replicas=0")
    assert here("set image deployment/web a=a:2") == (0, "deployment.apps/web image updated\n")
    changed = here("set resources deployment/web --limits=cpu=2,memory=1Gi")
    assert changed == (0, "deployment.apps/web resource requirements updated\n")
    found = here.said("get deploy web -o jsonpath={.spec.template.spec.containers[0].resources.limits.cpu}")
    assert found == "2"


def test_expose_makes_a_service_with_an_address(here: Kubectl) -> None:
    here.said("create deployment web --image=a --replicas=0")
    assert here("expose deployment web --port=80") == (0, "service/web exposed\n")
    assert here("get service web") == (0, Like("NAME TYPE CLUSTER-IP ...\nweb ClusterIP 10.96... <none> 80/TCP ...s\n"))
