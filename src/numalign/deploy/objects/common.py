"""What the objects of all components share: names, labels, images, pods, rights and network policies.

The modules beside it build the objects of one component with it. `charts/numalign/templates/_helpers.tpl` says the same
in Helm's language; tests compare what both make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from numalign.deploy import rights
from numalign.deploy.model import Agent, Gc, Image, Pods, Probe, Scheduler, Values
from numalign.deploy.release import OPENSHIFT, Release
from numalign.deploy.rights import Holder, Right

Object = dict[str, Any]
PRODUCT: Final = "numalign"
LONGEST_NAME: Final = 40
"""Leaves room for the component and a node group in names of at most 63 characters."""
ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
Component = Scheduler | Agent | Gc


def given(**fields: Any) -> Object:
    """The fields that are not empty, with `_` at the end of Python's own words removed."""
    return {key.rstrip("_"): value for key, value in fields.items() if value not in (None, "", [], {}, ())}


def json_text(value: Any) -> str:
    """As `toPrettyJson` of Helm writes it, so that both make the same text and the same checksum."""
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    return "".join(ESCAPED.get(letter, letter) for letter in text)


class Context(Struct, frozen=True):
    """One installation: its values and its release."""

    values: Values
    release: Release

    @property
    def name(self) -> str:
        return self.values.name_override or PRODUCT

    @property
    def fullname(self) -> str:
        if self.values.fullname_override:
            long = self.values.fullname_override
        else:
            long = self.release.name if self.name in self.release.name else f"{self.release.name}-{self.name}"
        return long[:LONGEST_NAME].rstrip("-")

    @property
    def namespace(self) -> str:
        return self.values.namespace_override or self.release.namespace

    @property
    def on_openshift(self) -> bool:
        return self.values.openshift.scc and OPENSHIFT in self.release.api_versions

    def component(self, component: str) -> str:
        return f"{self.fullname}-{component}"

    def selector(self, component: str) -> dict[str, str]:
        return {
            "app.kubernetes.io/name": self.name,
            "app.kubernetes.io/instance": self.release.name,
            "app.kubernetes.io/component": component,
        }

    def labels(self, component: str) -> dict[str, str]:
        return self.values.common_labels | {
            **self.selector(component),
            "app.kubernetes.io/part-of": PRODUCT,
            "app.kubernetes.io/managed-by": self.release.manager,
            "app.kubernetes.io/version": self.release.version,
        }

    def metadata(
        self,
        component: str,
        name: str,
        *,
        namespace: str | None = "",
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
    ) -> Object:
        """Metadata of an object; `namespace` None: it has none, empty: that of the release."""
        where = {} if namespace is None else {"namespace": namespace or self.namespace}
        return {
            "name": name,
            **where,
            "labels": (labels or {}) | self.labels(component),
            **given(annotations=self.values.common_annotations | (annotations or {})),
        }

    def image(self, image: Image) -> str:
        registry = self.values.global_.image_registry or image.registry
        prefix = f"{registry}/" if registry else ""
        if image.digest:
            return f"{prefix}{image.repository}@{image.digest}"
        return f"{prefix}{image.repository}:{image.tag or self.values.global_.image_tag or self.release.version}"

    def account(self, component: str, settings: Pods) -> str:
        return settings.service_account.name or self.component(component)


def service_account(context: Context, component: str, settings: Pods) -> list[Object]:
    if not settings.service_account.create:
        return []
    name, annotations = context.account(component, settings), settings.service_account.annotations
    metadata = context.metadata(component, name, annotations=annotations)
    return [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}]


def granted(context: Context, component: str, settings: Pods, table: Iterable[Right]) -> list[Object]:
    """Roles and bindings, named like the component."""
    if not context.values.rbac.create:
        return []
    holder = Holder("ServiceAccount", context.account(component, settings), context.namespace)
    return [
        _with_metadata(context, component, made)
        for made in rights.roles(holder, table, name=context.component(component))
    ]


def _with_metadata(context: Context, component: str, made: Object) -> Object:
    metadata = made["metadata"]
    return made | {
        "metadata": context.metadata(component, metadata["name"], namespace=metadata.get("namespace")),
    }


def labelled(context: Context, component: str, made: Iterable[Object]) -> list[Object]:
    """Objects of other modules with the labels of this installation."""
    return [_with_metadata(context, component, each) for each in made]


def non_root_account(context: Context, component: str, settings: Pods) -> list[Object]:
    """OpenShift's own rule for pods that choose their user, except root."""
    if not context.on_openshift:
        return []
    role = "system:openshift:scc:nonroot-v2"
    subject = Holder("ServiceAccount", context.account(component, settings), context.namespace).subject()
    return [
        {
            "apiVersion": rights.API_VERSION,
            "kind": "RoleBinding",
            "metadata": context.metadata(component, f"{context.component(component)}-scc"),
            "roleRef": {"apiGroup": rights.GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
    ]


def config_map(context: Context, component: str, name: str, data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": context.metadata(component, name), "data": data}


def checksum(data: dict[str, str]) -> str:
    return sha256(json_text(data).encode()).hexdigest()


def probe(settings: Probe, path: str, scheme: str) -> Object:
    return {
        "httpGet": {"path": path, "port": "pages", "scheme": scheme},
        **given(initialDelaySeconds=settings.initial_delay_seconds or None),
        "periodSeconds": settings.period_seconds,
        "timeoutSeconds": settings.timeout_seconds,
        "failureThreshold": settings.failure_threshold,
    }


def container(
    context: Context,
    name: str,
    settings: Component,
    args: Sequence[str],
    *,
    pages: str = "--port",
    ports: Sequence[Object] = (),
    **more: Any,
) -> Object:
    """`pages` is the option for the port of the pages; `more`: command, env, volumeMounts and probes."""
    logging = ["-v", str(settings.verbosity), f"--log-format={settings.log_format}"]
    where = [f"--bind-address={settings.bind_address}", f"{pages}={settings.port}"]
    mounts = [*more.pop("volumeMounts", []), *settings.extra_volume_mounts]
    return {
        "name": name,
        "image": context.image(settings.image),
        "imagePullPolicy": settings.image.pull_policy,
        # The end of the log then shows in `kubectl describe` of a pod that failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "args": [*args, *where, *logging, *settings.extra_args],
        "ports": [{"name": "pages", "containerPort": settings.port, "protocol": "TCP"}, *ports],
        **given(
            command=more.pop("command"),
            env=[*more.pop("env", []), *settings.extra_env],
            volumeMounts=mounts,
            securityContext=settings.security_context,
            resources=settings.resources,
            **more,
        ),
    }


def pod_template(
    context: Context,
    component: str,
    settings: Component,
    main: Object,
    *,
    volumes: Sequence[Object] = (),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> Object:
    network = settings.host_network
    pull = [*context.values.global_.image_pull_secrets, *settings.image.pull_secrets]
    own = context.labels(component) | (labels or {})
    return {
        "metadata": {
            "labels": settings.pod_labels | own,
            **given(annotations=settings.pod_annotations | (annotations or {})),
        },
        "spec": {
            "serviceAccountName": context.account(component, settings),
            "terminationGracePeriodSeconds": settings.termination_grace_period_seconds,
            "containers": [main],
            **given(
                imagePullSecrets=[{"name": name} for name in dict.fromkeys(pull)],
                hostNetwork=network or None,
                dnsPolicy=settings.dns_policy or ("ClusterFirstWithHostNet" if network else ""),
                priorityClassName=settings.priority_class_name,
                securityContext=settings.pod_security_context,
                nodeSelector=settings.node_selector,
                tolerations=settings.tolerations,
                affinity=settings.affinity,
                initContainers=settings.init_containers,
                volumes=[*volumes, *settings.extra_volumes],
                **more,
            ),
        },
    }


def network_policy(
    context: Context, component: str, pages: int, *, kubelet: bool = False, served: Sequence[int] = ()
) -> list[Object]:
    """Everything but its ports in, and nothing but the API server, DNS and, for agents, the kubelet out. Who may come
    in is limited for the pages alone: what is `served` beside them is for programs of the control plane, which a policy
    cannot name, and asks for a certificate or a token itself."""
    wanted = context.values.network_policy
    if not wanted.enabled:
        return []
    tcp = [*wanted.api_server_ports, *([wanted.kubelet_port] if kubelet else [])]
    egress: list[Object] = [{"ports": _tcp(tcp)}] if tcp else []
    if wanted.dns:
        egress.append({"ports": [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]})
    ingress = [{"ports": _tcp([pages]), **given(from_=wanted.ingress_from)}]
    ingress += [{"ports": _tcp(served)}] if served else []
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": context.metadata(component, context.component(component)),
            "spec": {
                "podSelector": {"matchLabels": context.selector(component)},
                "policyTypes": ["Ingress", "Egress"],
                "ingress": ingress,
                "egress": egress,
            },
        }
    ]


def _tcp(ports: Sequence[int]) -> list[Object]:
    return [{"port": port, "protocol": "TCP"} for port in ports]
