"""Defaults of pod specs, in pods and in the templates of workloads; canonical quantities; nulls.

`pods` and `workloads` call `complete_spec`, which changes the spec in place. Pods are created by the thousand, so the
usual container costs a few dictionary lookups.

The server stores every quantity in its canonical form. An invalid quantity makes the whole body invalid, so it is
rejected before validation. Nulls mean the same as absent fields and are dropped, as the real server drops them when it
decodes a body; metadata is left alone."""

from functools import lru_cache
from typing import Any, Final

from numalign.api.decode import quantity
from numalign.api.objects import qos
from numalign.api.objects.pod import ResourceRequirements
from numalign.simulator import trees
from numalign.simulator.trees import Tree

KEPT: Final = ("kind", "apiVersion", "metadata")
GRAMMAR: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
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


def without_nulls(tree: Tree) -> Tree:
    return {key: value if key in KEPT else drop_nulls(value) for key, value in tree.items() if value is not None}


def drop_nulls(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: drop_nulls(value) for key, value in thing.items() if value is not None}
    return [drop_nulls(value) for value in thing] if isinstance(thing, list) else thing


class InvalidQuantity(ValueError):
    """A field of the object is not a quantity."""


@lru_cache(maxsize=16_384)
def _canonical_text(text: str) -> str:
    try:
        return str(quantity.parse(text))
    except quantity.QuantityError:
        raise InvalidQuantity(GRAMMAR) from None


def canonical_quantity(written: Any) -> str:
    # An unquoted number counts as its text; other types are invalid.
    if isinstance(written, str):
        return _canonical_text(written)
    if written is None:
        return "0"
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise InvalidQuantity(GRAMMAR)
    return _canonical_text(str(written))


def canonicalise(holder: Tree, *fields: str) -> None:
    """Writes the quantities under these fields in their canonical form."""
    for field in fields:
        amounts = holder.get(field)
        if amounts:
            holder[field] = {name: canonical_quantity(written) for name, written in amounts.items()}


def parsed_quantities(amounts: Tree | None) -> dict[str, quantity.Quantity]:
    return {name: quantity.parse(written) for name, written in amounts.items()} if amounts else {}


def qos_class(resources: Tree | None) -> qos.QoS:
    """The QoS class of these requests and limits alone."""
    return _qos_class(trees.encoded(resources)) if resources else qos.QoS.BEST_EFFORT


# There are far fewer distinct sizes than containers.
@lru_cache(maxsize=4096)
def _qos_class(data: bytes) -> qos.QoS:
    resources = trees.decoded(data)
    wants = ResourceRequirements(
        parsed_quantities(resources.get("requests")), parsed_quantities(resources.get("limits"))
    )
    return qos.of_requirements(wants)


def complete_spec(spec: Tree, *, is_template: bool) -> None:
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
    """Sets defaults. Empty texts count as absent, zeros do not."""
    for field, value in defaults.items():
        if tree.get(field, "") == "":
            tree[field] = value


def pull_policy(image: str) -> str:
    """Images without a tag or with the tag latest can change, so they are always pulled."""
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
    canonicalise(resources, "limits", "requests")
    # Requests default to limits in pods only; templates stay as written.
    if resources.get("limits") and not is_template:
        resources["requests"] = resources["limits"] | (resources.get("requests") or {})


def _complete_source(source: Tree) -> None:
    """Completes the source of an environment variable or of a file of the downward API."""
    if "fieldRef" in source:
        fill(source["fieldRef"], {"apiVersion": "v1"})
    if "resourceFieldRef" in source:
        reference = source["resourceFieldRef"]
        reference["divisor"] = canonical_quantity(reference.get("divisor") or "0")


def _complete_probe(probe: Tree) -> None:
    # A zero in a probe counts as absent.
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
        volume["emptyDir"]["sizeLimit"] = canonical_quantity(volume["emptyDir"]["sizeLimit"])
    if "ephemeral" in volume:
        _complete_claim_template(volume["ephemeral"].get("volumeClaimTemplate") or {})
    for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
        for file in (source.get("downwardAPI") or {}).get("items") or ():
            _complete_source(file)


def _complete_claim_template(template: Tree) -> None:
    template.setdefault("metadata", {})
    complete_claim(template.setdefault("spec", {}))


def complete_claim(spec: Tree) -> None:
    """The spec of a claim, alone or in a template."""
    spec.setdefault("volumeMode", "Filesystem")
    canonicalise(spec.setdefault("resources", {}), "limits", "requests")


def _claim_host_ports(spec: Tree) -> None:
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or ():
            for port in container.get("ports") or ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
