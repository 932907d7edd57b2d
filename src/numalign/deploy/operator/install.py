"""The objects that install the operator itself: namespace, definitions, account, rights and Deployment. Pure.

`numalign operator render` prints them, and `installation` has them beside other components. The operator may grant only
what it holds, so its roles include those of its operands; it has neither of the verbs escalate and bind."""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from numalign.deploy import presets, rights, values
from numalign.deploy.model import Image, Operator, Values
from numalign.deploy.objects import cluster
from numalign.deploy.objects.common import (
    Context,
    Object,
    checksum,
    config_map,
    given,
    json_text,
    labelled,
    network_policy,
)
from numalign.deploy.operator import crds
from numalign.deploy.operator.objects import Tree
from numalign.deploy.release import Release
from numalign.deploy.rights import Holder, Right

NAME: Final = "operator"
PORT: Final = 10263
USER: Final = 65532
FOLDER: Final = "/etc/numalign"
FILE: Final = "values.json"


def component(installed: Values, release: Release) -> list[Object]:
    """The operator as a component of an installation, which brings the namespace and decides about definitions."""
    wanted = installed.operator
    if not wanted.enabled:
        return []
    context = Context(installed, release)
    here = structs.replace(release, namespace=context.namespace)
    document = _document(installed)
    operands = Release(namespace=context.namespace), values.read(document)
    made = objects(here, installed, wanted.image, _args(wanted), document or None, operands=operands)
    pull = dict.fromkeys((*installed.global_.image_pull_secrets, *wanted.image.pull_secrets))
    for each in made:
        if each["kind"] == "Deployment":
            each["spec"]["template"]["spec"] |= given(imagePullSecrets=[{"name": name} for name in pull])
    granted = () if installed.rbac.create else rights.KINDS
    kept = [each for each in made if each["kind"] not in ("Namespace", "CustomResourceDefinition", *granted)]
    return [*_definitions(context), *labelled(context, NAME, kept)]


def _document(installed: Values) -> dict[str, Any]:
    """The values file of the operator. Its operands come from the registry of this installation, too."""
    world = installed.global_
    shared = given(
        imageRegistry=world.image_registry, imageTag=world.image_tag, imagePullSecrets=world.image_pull_secrets
    )
    return values.over({"global": shared} if shared else {}, installed.operator.values)


def _definitions(context: Context) -> list[Object]:
    wanted = context.values.crds
    found = labelled(context, NAME, crds.definitions() if wanted.install else [])
    for each in found if wanted.keep else ():
        each["metadata"]["annotations"] = each["metadata"].get("annotations", {}) | cluster.KEEP
    return found


def _args(wanted: Operator) -> tuple[str, ...]:
    return (
        f"--image-policy={wanted.image_policy}",
        *([f"--trusted-digests={','.join(wanted.trusted_digests)}"] if wanted.trusted_digests else []),
        "-v",
        str(wanted.verbosity),
        f"--log-format={wanted.log_format}",
    )


def objects(
    release: Release,
    values: Values,
    image: Image,
    args: tuple[str, ...] = (),
    document: Any = None,
    *,
    operands: tuple[Release, Values] | None = None,
) -> list[Tree]:
    """`args` are further options of `numalign operator run`, `document` the values file that it is given. `operands`
    are the release and the values of its operands; None: those of the operator."""
    context = Context(values, release)
    account = context.component(NAME)
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": release.namespace,
            # The agents mount folders of the host.
            "labels": {"pod-security.kubernetes.io/enforce": "privileged", "app.kubernetes.io/part-of": "numalign"},
        },
    }
    service_account = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": context.metadata(NAME, account),
    }
    holder = Holder("ServiceAccount", account, release.namespace)
    granted = [
        {**each, "metadata": each["metadata"] | {"labels": context.labels(NAME)}}
        for each in rights.roles(holder, table(*(operands or (release, values))), name=account)
    ]
    definitions = [
        {**each, "metadata": each["metadata"] | {"labels": context.labels(NAME)}} for each in crds.definitions()
    ]
    deployment = _deployment(context, account, image, args)
    before = [namespace, *definitions, service_account, *granted, *network_policy(context, NAME, PORT)]
    if document is None:
        return [*before, deployment]
    data = {FILE: json_text(document)}
    return [*before, config_map(context, NAME, account, data), _with_file(deployment, account, checksum(data))]


def _with_file(deployment: Tree, name: str, digest: str) -> Tree:
    """The Deployment with its values file, which rolls the pod when it changes."""
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    container["args"].append(f"--values={FOLDER}/{FILE}")
    container["volumeMounts"] = [{"name": "values", "mountPath": FOLDER, "readOnly": True}]
    template["spec"]["volumes"] = [{"name": "values", "configMap": {"name": name}}]
    template["metadata"]["annotations"] = {"checksum/config": digest}
    return deployment


def table(release: Release, values: Values) -> tuple[Right, ...]:
    """The operator's own rights, and everything that it grants to its operands."""
    agent = values.agent
    options = [
        *([rights.CONFIGZ] if presets.layout(agent).configz else []),
        *([rights.UNTAINT] if agent.remove_startup_taint else []),
        *([rights.ENFORCE] if agent.direct_mode else []),
    ]
    lease = f"{Context(values, release).fullname}-scheduler"
    return (
        *rights.in_namespace(rights.OPERATOR, release.namespace),
        *rights.needed(rights.AGENT, options),
        *rights.by_lease(rights.needed(rights.SCHEDULER, [rights.PAGES]), release.namespace, lease),
    )


def _deployment(context: Context, account: str, image: Image, args: tuple[str, ...]) -> Tree:
    labels = context.labels(NAME)
    restricted = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }

    def probe(path: str) -> Tree:
        return {"httpGet": {"path": path, "port": "pages"}, "periodSeconds": 10, "timeoutSeconds": 5}

    container = {
        "name": NAME,
        "image": context.image(image),
        "imagePullPolicy": image.pull_policy,
        "command": ["numalign", "operator", "run"],
        "args": [
            f"--namespace={context.namespace}",
            "--bind-address=0.0.0.0",
            f"--port={PORT}",
            *args,
        ],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "ports": [{"name": "pages", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": restricted,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "livenessProbe": probe("/healthz") | {"initialDelaySeconds": 10},
        "readinessProbe": probe("/readyz"),
    }
    pod = {
        "serviceAccountName": account,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        "containers": [container],
        **given(imagePullSecrets=[{"name": name} for name in context.values.global_.image_pull_secrets]),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": context.metadata(NAME, account),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": context.selector(NAME)},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
