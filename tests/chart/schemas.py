"""JSON schemas of Kubernetes kinds, made from the OpenAPI document in the source of a Kubernetes version.

kubeconform reads them. The source is a Go module that the lab's oracles need anyway; `go.sum` verifies it."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from numalign.lab import build

REFERENCE: Final = re.compile(r'"#/definitions/([^"]+)"')
QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
TEXT_OR_NUMBER: Final = {"oneOf": [{"type": "string"}, {"type": "number"}]}


@functools.cache
def source(minor: str) -> Path:
    """The folder of the module k8s.io/kubernetes of this minor."""
    command = [str(build.go()), "mod", "download", "-json", "k8s.io/kubernetes"]
    folder = build.SOURCES / "kubelet" / f"v{minor}"
    ran = subprocess.run(command, cwd=folder, env=build.environment(), capture_output=True, check=True)
    return Path(json.loads(ran.stdout)["Dir"])


def write(minor: str, kinds: Iterable[str], into: Path) -> None:
    """A file for each of the kinds, with everything that it refers to."""
    document = json.loads((source(minor) / "api/openapi-spec/swagger.json").read_text())
    definitions: dict[str, Any] = {name: _strict(each) for name, each in document["definitions"].items()}
    definitions[QUANTITY] = TEXT_OR_NUMBER
    wanted = set(kinds)
    for name, definition in definitions.items():
        for named in definition.get("x-kubernetes-group-version-kind", []):
            if named["kind"] in wanted:
                used = {each: definitions[each] for each in sorted(_closure(definitions, name))}
                parts = (named["kind"].lower(), named["group"].partition(".")[0], named["version"])
                (into / f"{'-'.join(filter(None, parts))}.json").write_text(
                    json.dumps({**definition, "definitions": used})
                )


def _strict(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_strict(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.get("format") == "int-or-string":
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    result = {key: _strict(value) for key, value in tree.items()}
    if isinstance(tree.get("properties"), dict):
        result.setdefault("additionalProperties", False)
    return result


def _closure(definitions: dict[str, Any], name: str) -> set[str]:
    found: set[str] = set()
    left = [name]
    while left:
        for each in _referred(definitions[left.pop()]):
            if each not in found:
                found.add(each)
                left.append(each)
    return found


def _referred(definition: Any) -> Iterator[str]:
    yield from REFERENCE.findall(json.dumps(definition))
