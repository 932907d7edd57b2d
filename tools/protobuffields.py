"""Writes the table by which the embedded API server reads protobuf bodies: field numbers, names and types.

Run by hand when the emulated Kubernetes version moves: `python tools/protobuffields.py <Kubernetes source tree>`.
Numbers and types come from the generated.proto files, from types.go comes how a field looks in JSON: whether it is part
of the object around it, and whether a zero is written. Only messages that the kinds in `ROOTS` reach are kept.
An entry reads {"number": [name, type, flags]}; the type is a scalar, a message, `[type]` or `{type}` (a map from text),
the flags are "+" (a zero is kept) and "<" (the fields belong to the object around it).
"""

import json
import re
import sys
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).parents[1] / "src/numalign/simulator/apiserver/http/data/protobuf.json"
STAGING: Final = "staging/src/k8s.io"
META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1"
ROOTS: Final = {
    "core.v1": (
        "Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod "
        "PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount"
    ),
    "apps.v1": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "batch.v1": "CronJob Job",
    "coordination.v1": "Lease",
    "events.v1": "Event",
    "discovery.v1": "EndpointSlice",
    "policy.v1": "Eviction PodDisruptionBudget",
    "scheduling.v1": "PriorityClass",
    "storage.v1": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
    "rbac.v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "authorization.v1": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "authentication.v1": "SelfSubjectReview TokenRequest",
    "autoscaling.v1": "Scale",
    "node.v1": "RuntimeClass",
}
OPTIONS: Final = (f"{META}.DeleteOptions",)

FIELD: Final = re.compile(
    r"^  (?:optional |repeated |required )?(map<string, )?([\w.]+)>? (\w+) = ([0-9]+);", re.MULTILINE
)
REPEATED: Final = re.compile(r"^  repeated ")
MESSAGE: Final = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
STRUCT: Final = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MEMBER: Final = re.compile(r'^\t(?:\w+ )?(\*?)[^\s`]*.*`json:"([^"]*)"[^`]*protobuf:"\w+,([0-9]+),', re.MULTILINE)
SCALARS: Final = frozenset({"string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double", "float"})
# Messages that JSON shows as one value; the reader knows them by these names.
VALUES: Final = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "Raw",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    f"{META}.FieldsV1": "Raw",
    f"{META}.Time": "Time",
    f"{META}.MicroTime": "MicroTime",
    f"{META}.Duration": "Duration",
}

Field = tuple[str, str, str]


def main(source: Path) -> None:
    messages = {name: fields for path in _protos(source) for name, fields in _messages(path, source)}
    roots = [f"k8s.io.api.{package}.{kind}" for package, kinds in ROOTS.items() for kind in kinds.split()]
    kept = _reached(messages, [*roots, *OPTIONS])
    table = {_short(name): _entries(messages[name]) for name in sorted(kept)}
    TABLE.write_text(json.dumps(table, separators=(",", ":")).replace("},", "},\n") + "\n")


def _protos(source: Path) -> list[Path]:
    rooms = ("api", "apimachinery/pkg")
    return [path for room in rooms for path in sorted((source / STAGING / room).rglob("generated.proto"))]


def _messages(path: Path, source: Path) -> list[tuple[str, dict[int, Field]]]:
    package = ".".join(path.relative_to(source / "staging/src").parent.parts)
    looks = _looks(path.with_name("types.go"))
    found = []
    for match in MESSAGE.finditer(path.read_text()):
        name = f"{package}.{match[1]}"
        found.append((name, _fields(match[2], package, looks.get(match[1], {}))))
    return found


def _fields(body: str, package: str, looks: dict[int, tuple[str, str]]) -> dict[int, Field]:
    fields = {}
    for line in body.splitlines():
        match = FIELD.match(line)
        if match is None:
            continue
        kind = match[2].removeprefix(".")
        kind = kind if kind in SCALARS or "." in kind else f"{package}.{kind}"
        number = int(match[4])
        name, flags = looks.get(number, (match[3], "+"))
        shape = f"{{{kind}}}" if match[1] else f"[{kind}]" if REPEATED.match(line) else kind
        fields[number] = (name or match[3], shape, flags)
    return fields


def _looks(types: Path) -> dict[str, dict[int, tuple[str, str]]]:
    """By struct and field number: the name in JSON, and the flags."""
    if not types.exists():
        return {}
    return {struct[1]: dict(map(_look, MEMBER.finditer(struct[2]))) for struct in STRUCT.finditer(types.read_text())}


def _look(member: re.Match[str]) -> tuple[int, tuple[str, str]]:
    name, _, options = member[2].partition(",")
    if "inline" in options.split(",") or not name:
        return int(member[3]), (name, "<")
    is_kept = member[1] == "*" or not {"omitempty", "omitzero"} & set(options.split(","))
    return int(member[3]), (name, "+" if is_kept else "")


def _reached(messages: dict[str, dict[int, Field]], roots: list[str]) -> set[str]:
    kept, waiting = set[str](), list(roots)
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        kept.add(name)
        kinds = (kind.strip("[]{}") for _, kind, _ in messages[name].values())
        waiting += [kind for kind in kinds if kind not in SCALARS and kind not in VALUES]
    return kept


def _entries(fields: dict[int, Field]) -> dict[str, list[str]]:
    return {
        str(number): [name, _short_kind(kind), flags] if flags else [name, _short_kind(kind)]
        for number, (name, kind, flags) in sorted(fields.items())
    }


def _short_kind(kind: str) -> str:
    bare = kind.strip("[]{}")
    return kind.replace(bare, _short(bare))


def _short(name: str) -> str:
    return VALUES.get(name) or name.replace(META, "meta").removeprefix("k8s.io.api.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
