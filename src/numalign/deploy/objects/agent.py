"""The agent's objects: account, rights, the policy about reports, and a DaemonSet for each node group."""

from __future__ import annotations

from typing import Any, Final

from numalign.deploy import model, podpolicy, presets, rights
from numalign.deploy.model import Agent
from numalign.deploy.objects import common
from numalign.deploy.objects.common import Context, Object, given
from numalign.deploy.presets import Layout
from numalign.deploy.release import NODE_IN_TOKENS
from numalign.deploy.rights import Holder

NAME: Final = "agent"
HOST: Final = "/host"
FOLDER: Final = "/etc/numalign"
FILE: Final = "exclude.json"
GROUP_LABEL: Final = "numalign.io/node-group"
SEES_UNMOUNTS: Final = "HostToContainer"


def objects(context: Context) -> list[Object]:
    settings = context.values.agent
    if not settings.enabled:
        return []
    found = model.groups(settings)
    options = [
        *([rights.CONFIGZ] if any(presets.layout(each).configz for each in found) else []),
        *([rights.UNTAINT] if any(each.remove_startup_taint for each in found) else []),
        *([rights.ENFORCE] if any(each.direct_mode for each in found) else []),
    ]
    names = [group.name for group in settings.node_groups] or [""]
    return [
        *_security_context_constraints(context, settings),
        *common.service_account(context, NAME, settings),
        *common.granted(context, NAME, settings, rights.needed(rights.AGENT, options)),
        *_policy(context, settings),
        *(_decision_policy(context, settings) if rights.ENFORCE in options else []),
        *common.network_policy(context, NAME, settings.port, kubelet=rights.CONFIGZ in options),
        *(each for name, own in zip(names, found, strict=True) for each in _daemon_set(context, name, own)),
    ]


def _policy(context: Context, settings: Agent) -> list[Object]:
    if not (settings.own_report_policy and context.values.rbac.create and context.release.at_least(NODE_IN_TOKENS)):
        return []
    holder = Holder("ServiceAccount", context.account(NAME, settings), context.namespace)
    made = rights.own_report_policy(holder, f"{context.component(NAME)}-own-report")
    return common.labelled(context, NAME, made)


def _decision_policy(context: Context, settings: Agent) -> list[Object]:
    if not (settings.decision_policy and context.values.rbac.create and context.release.at_least(NODE_IN_TOKENS)):
        return []
    return common.labelled(context, NAME, podpolicy.decisions(f"{context.component(NAME)}-decisions"))


def _daemon_set(context: Context, group: str, settings: Agent) -> list[Object]:
    name = f"{context.component(NAME)}-{group}" if group else context.component(NAME)
    label = {GROUP_LABEL: group} if group else {}
    layout = presets.layout(settings)
    data = {FILE: common.json_text(settings.exclude)} if settings.exclude else {}
    volumes, mounts = _host_files(layout, settings)
    if data:
        volumes.append({"name": "config", "configMap": {"name": name}})
        mounts.append({"name": "config", "mountPath": FOLDER, "readOnly": True})
    env = [_from_field("NODE_NAME", "spec.nodeName")]
    if layout.configz:
        env.append(_from_field("NODE_ADDRESS", "status.hostIP"))
    main = common.container(
        context,
        NAME,
        settings,
        _args(layout, settings),
        command=["numalign", "agent", "run"],
        env=env,
        volumeMounts=mounts,
        livenessProbe=common.probe(settings.liveness_probe, "/healthz", "HTTP"),
        readinessProbe=common.probe(settings.readiness_probe, "/readyz", "HTTP"),
    )
    annotations = {
        **({"checksum/config": common.checksum(data)} if data else {}),
        **({"openshift.io/required-scc": context.component(NAME)} if context.on_openshift else {}),
    }
    template = common.pod_template(
        context, NAME, settings, main, volumes=volumes, labels=label, annotations=annotations
    )
    made = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": context.metadata(NAME, name, labels=label, annotations=settings.annotations),
        "spec": {
            "selector": {"matchLabels": context.selector(NAME) | label},
            **given(updateStrategy=settings.update_strategy),
            "template": template,
        },
    }
    return [*([common.config_map(context, NAME, name, data)] if data else []), made]


def _args(layout: Layout, settings: Agent) -> list[str]:
    socket, authority = settings.pod_resources_socket, layout.certificate_authority
    return [
        f"--host-root={HOST}",
        f"--kubelet-dir={layout.kubelet_dir}",
        *([f"--kubelet-config={layout.kubelet_config}"] if layout.kubelet_config else []),
        *([f"--podresources-socket={HOST}{socket}"] if socket else []),
        *(["--configz"] if layout.configz else []),
        *([f"--kubelet-certificate-authority={authority}"] if layout.configz and authority else []),
        f"--mode={settings.mode}",
        f"--api-version={settings.api_version}",
        f"--period={settings.period}",
        *([f"--exclude={FOLDER}/{FILE}"] if settings.exclude else []),
        *(["--remove-startup-taint"] if settings.remove_startup_taint else []),
        *(["--direct-mode", f"--nri-socket={settings.nri_socket}"] if settings.direct_mode else []),
    ]


def _host_files(layout: Layout, settings: Agent) -> tuple[list[Object], list[Object]]:
    """Volumes and mounts. Folders rather than files and sockets, which the kubelet replaces."""
    volumes = [_volume("sys", "/sys"), _volume("proc", "/proc"), _volume("kubelet", layout.kubelet_dir)]
    mounts = [_mount("sys", "/sys"), _mount("proc", "/proc")]
    # Otherwise volumes of other pods that are below the folder would stay mounted here, and busy, after their pods.
    mounts.append(_mount("kubelet", layout.kubelet_dir) | {"mountPropagation": SEES_UNMOUNTS})
    if not presets.DEVICE_PLUGINS.startswith(f"{layout.kubelet_dir}/"):
        volumes.append(_volume("device-plugins", presets.DEVICE_PLUGINS))
        mounts.append(_mount("device-plugins", presets.DEVICE_PLUGINS))
    socket = settings.pod_resources_socket.rpartition("/")[0]
    if socket and not f"{socket}/".startswith(f"{layout.kubelet_dir}/"):
        volumes.append(_volume("pod-resources", socket))
        mounts.append(_mount("pod-resources", socket))
    if settings.direct_mode:
        folder = settings.nri_socket.rpartition("/")[0]
        # On nodes without NRI the agent works on, in predict mode.
        volumes.append(_volume("nri", folder, "DirectoryOrCreate"))
        mounts.append(_mount("nri", folder))
    for index, each in enumerate(layout.host_paths):
        volumes.append(_volume(f"host-{index}", each.path, each.type))
        mounts.append(_mount(f"host-{index}", each.path))
    return volumes, mounts


def _volume(name: str, path: str, kind: str = "Directory") -> Object:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def _mount(name: str, path: str) -> Object:
    return {"name": name, "mountPath": f"{HOST}{path}", "readOnly": True}


def _from_field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _security_context_constraints(context: Context, settings: Agent) -> list[Object]:
    if not context.on_openshift:
        return []
    any_id: dict[str, Any] = {"type": "RunAsAny"}
    kind = {"type": context.values.openshift.se_linux_type, "level": "s0"}
    return [
        {
            "apiVersion": "security.openshift.io/v1",
            "kind": "SecurityContextConstraints",
            "metadata": context.metadata(NAME, context.component(NAME), namespace=None),
            "allowHostDirVolumePlugin": True,
            "allowHostIPC": False,
            "allowHostNetwork": settings.host_network,
            "allowHostPID": False,
            "allowHostPorts": settings.host_network,
            "allowPrivilegeEscalation": False,
            "allowPrivilegedContainer": False,
            "readOnlyRootFilesystem": False,
            "requiredDropCapabilities": ["ALL"],
            "fsGroup": any_id,
            "runAsUser": any_id,
            "supplementalGroups": any_id,
            "seLinuxContext": {"type": "MustRunAs", "seLinuxOptions": kind},
            "seccompProfiles": ["runtime/default"],
            "users": [f"system:serviceaccount:{context.namespace}:{context.account(NAME, settings)}"],
            "volumes": ["configMap", "downwardAPI", "emptyDir", "hostPath", "projected", "secret"],
        }
    ]
