"""Makes the table of built-in API fields out of the OpenAPI documents a kube-apiserver serves.

Run by hand when the emulated Kubernetes version moves: `make apifields OPENAPI=<folder>`, where the folder holds what
`/openapi/v3/api/v1` and its siblings answer, one JSON file each. Only facts are kept: names of types and fields, how
lists and maps merge, required fields, defaults and enumerations. Descriptions, paths and operations are left out."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

TABLE: Final = Path(__file__).resolve().parents[1] / "src/numalign/simulator/apiserver/schemas/data/builtin.json.gz"
REFERENCE: Final = "#/components/schemas/"
KINDS: Final = "x-kubernetes-group-version-kind"
KEPT: Final = {
    "additionalProperties",
    "default",
    "enum",
    "format",
    "items",
    "oneOf",
    "properties",
    "required",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-preserve-unknown-fields",
}
SERVED: Final = {
    "": """Pod Node Namespace Event ConfigMap Secret ServiceAccount Service Endpoints PersistentVolume Binding
        PersistentVolumeClaim ReplicationController LimitRange ResourceQuota PodTemplate""",
    "apps": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch": "Job CronJob",
    "autoscaling": "Scale",
    "policy": "PodDisruptionBudget Eviction",
    "coordination.k8s.io": "Lease",
    "events.k8s.io": "Event",
    "discovery.k8s.io": "EndpointSlice",
    "node.k8s.io": "RuntimeClass",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate ResourceSlice DeviceClass DeviceTaintRule",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment",
    "rbac.authorization.k8s.io": "Role RoleBinding ClusterRole ClusterRoleBinding",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "networking.k8s.io": "NetworkPolicy",
    "admissionregistration.k8s.io": "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "authentication.k8s.io": "SelfSubjectReview TokenReview TokenRequest",
}


def main(folder: Path) -> None:
    found = table(folder)
    text = json.dumps(found, separators=(",", ":"), sort_keys=True)
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    # Without a time in it, the same documents make the same file.
    TABLE.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(found)} types, {len(text)} characters, {TABLE.stat().st_size} bytes packed")


def table(folder: Path) -> dict[str, Any]:
    """Every type that a served kind is made of, by name; kinds say so themselves."""
    models = _models(folder)
    roots = [name for name, model in models.items() if any(_served(each) for each in model.get(KINDS, ()))]
    found = {name: _stripped(models[name]) for name in sorted(_reachable(models, roots))}
    for name in roots:
        kinds = [[each["group"], each["version"], each["kind"]] for each in models[name][KINDS] if _served(each)]
        found[name][KINDS] = kinds
    return found


def _models(folder: Path) -> dict[str, Any]:
    models: dict[str, Any] = {}
    for file in sorted(folder.glob("*.json")):
        models |= json.loads(file.read_text())["components"]["schemas"]
    return models


def _served(kind: dict[str, str]) -> bool:
    return kind["version"] == "v1" and kind["kind"] in SERVED.get(kind["group"], "").split()


def _reachable(models: dict[str, Any], roots: list[str]) -> set[str]:
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(_references(models[name]))
    return seen


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(REFERENCE)
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _references(each)


def _stripped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without prose; a reference, also one wrapped into allOf, becomes the bare name of its type."""
    kept: dict[str, Any] = {}
    wrapped = [schema, *schema.get("allOf", ())]
    for each in wrapped:
        if "$ref" in each:
            kept["$ref"] = each["$ref"].removeprefix(REFERENCE)
    for key, value in schema.items():
        if key == "properties":
            kept[key] = {name: _stripped(field) for name, field in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            kept[key] = _stripped(value)
        elif key in KEPT:
            kept[key] = value
    return kept


if __name__ == "__main__":
    main(Path(sys.argv[1]))
