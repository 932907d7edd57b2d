"""The defaults of a pod's spec, in pods and in the templates of workloads.

`pods` and `workloads` hand a spec over, which is completed in place. Pods are created by the thousand, so the usual
container costs a handful of dictionary lookups."""

from typing import Any, Final

from numalign.simulator.apiserver.defaults import amounts
from numalign.simulator.trees import Tree

ALWAYS: Final = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
SPEC: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
HTTP: Final = {"path": "/", "scheme": "HTTP"}
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
FILE_MODE: Final = 0o644
WITH_MODE: Final = ("secret", "configMap", "downwardAPI", "projected")


def complete(spec: Tree, *, is_template: bool) -> None:
    fill(spec, SPEC)
    spec.setdefault("securityContext", {})
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            _complete_container(container, is_template=is_template)
    for volume in spec.get("volumes") or ():
        _complete_volume(volume)
    if not is_template:
        spec.setdefault("enableServiceLinks", True)
        if spec.get("hostNetwork"):
            _claim_host_ports(spec)


def fill(tree: Tree, defaults: Tree) -> None:
    """Empty texts count as absent, zeros do not."""
    for field, value in defaults.items():
        if tree.get(field, "") == "":
            tree[field] = value


def pull_policy(image: str) -> str:
    """Whatever can change under its name is pulled every time: no tag, and the tag latest."""
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def _complete_container(container: Tree, *, is_template: bool) -> None:
    fill(container, ALWAYS)
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    resources = container.setdefault("resources", {})
    if resources:
        complete_resources(resources, is_template=is_template)
    for port in container.get("ports") or ():
        fill(port, {"protocol": "TCP"})
    for variable in container.get("env") or ():
        _complete_source(variable.get("valueFrom") or {})
    for field in PROBES:
        if field in container:
            _complete_probe(container[field])
    for hook in (container.get("lifecycle") or {}).values():
        _complete_handler(hook)


def complete_resources(resources: Tree, *, is_template: bool) -> None:
    amounts.settle(resources, "limits", "requests")
    # Only a pod asks for what it is limited to; its template stays as written.
    if resources.get("limits") and not is_template:
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})


def _complete_source(source: Tree) -> None:
    """Of an environment variable or a file of the downward API."""
    if "fieldRef" in source:
        fill(source["fieldRef"], {"apiVersion": "v1"})
    if "resourceFieldRef" in source:
        reference = source["resourceFieldRef"]
        reference["divisor"] = amounts.canonical(reference.get("divisor") or "0")


def _complete_probe(probe: Tree) -> None:
    # A zero in a probe means that nobody chose.
    for field, value in PROBE.items():
        probe[field] = probe.get(field) or value
    _complete_handler(probe)


def _complete_handler(handler: Any) -> None:
    if not isinstance(handler, dict):
        return
    if "httpGet" in handler:
        fill(handler["httpGet"], HTTP)
    if "grpc" in handler:
        handler["grpc"].setdefault("service", "")


def _complete_volume(volume: Tree) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    for kind in WITH_MODE:
        if kind in volume:
            volume[kind].setdefault("defaultMode", FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    if (volume.get("emptyDir") or {}).get("sizeLimit") is not None:
        volume["emptyDir"]["sizeLimit"] = amounts.canonical(volume["emptyDir"]["sizeLimit"])
    if "ephemeral" in volume:
        _complete_claim_template(volume["ephemeral"].get("volumeClaimTemplate") or {})
    for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
        for file in (source.get("downwardAPI") or {}).get("items") or ():
            _complete_source(file)


def _complete_claim_template(template: Tree) -> None:
    template.setdefault("metadata", {})
    complete_claim(template.setdefault("spec", {}))


def complete_claim(spec: Tree) -> None:
    """A claim's spec, alone or in a template."""
    spec.setdefault("volumeMode", "Filesystem")
    amounts.settle(spec.setdefault("resources", {}), "limits", "requests")


def _claim_host_ports(spec: Tree) -> None:
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
