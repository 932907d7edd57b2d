"""What an applied object must be before it is merged: of the right kind, without books, and shaped as its kind.

The words are the server's own, which for misshapen objects are those of its merge library, Go values included; the
code for these is 500."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import fieldsets, gotext, typed
from numalign.simulator.apiserver.patches.refused import BadPatch
from numalign.simulator.apiserver.schemas import shapes
from numalign.simulator.apiserver.schemas.builtin import Kind
from numalign.simulator.apiserver.schemas.shapes import TypeDef
from numalign.simulator.trees import Tree

BROKEN: Final = 500


def refuse_foreign(wanted: Tree, kind: Kind) -> None:
    group, _, version = trees.text(wanted, "apiVersion").rpartition("/")
    if (group, version, trees.text(wanted, "kind")) != kind:
        raise BadPatch(f"invalid object type: {group}/{version}, Kind={trees.text(wanted, 'kind')}")
    if trees.metadata(wanted).get("managedFields") is not None:
        raise BadPatch("metadata.managedFields must be nil")


def refuse_misshapen(wanted: Tree, kind: Kind, shape: TypeDef) -> None:
    problems = list(_problems(wanted, shape, ""))
    if problems:
        text = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
        name = f"{trees.text(wanted, 'metadata', 'namespace')}/{trees.text(wanted, 'metadata', 'name')}"
        typed_as = f"{kind[0]}/{kind[1]}, Kind={kind[2]}"
        raise BadPatch(f"failed to create typed patch object ({name}; {typed_as}): {text}", BROKEN)


def _problems(value: Any, shape: TypeDef, path: str) -> Iterator[str]:
    walk = typed.form(value, shape)
    if value is None:
        return
    if walk == typed.STRUCT:
        if isinstance(value, dict):
            yield from _problems_of_fields(value, shape, path)
        else:
            yield f"{path}: expected map, got &{{{gotext.value(value)}}}"
    elif walk == typed.LIST:
        if isinstance(value, list):
            yield from _problems_of_items(value, shape, path)
        else:
            yield f"{path}: expected list, got &{{{gotext.value(value)}}}"
    else:
        yield from _problems_of_scalar(value, shape, path)


def _problems_of_fields(value: dict[str, Any], shape: TypeDef, path: str) -> Iterator[str]:
    for key, child in value.items():
        below = shape.child(key)
        if below is None:
            yield f"{path}.{key}: field not declared in schema"
            return
        yield from _problems(child, below, f"{path}.{key}")


def _problems_of_items(value: list[Any], shape: TypeDef, path: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(value):
        step = f"i:{index}"
        if shape.relation in (shapes.SET, shapes.MAP):
            try:
                step = typed.step_to(item, shape)
            except ValueError as error:
                yield f"{path}: element {index}: {error}"
                return
            if step in seen:
                yield f"{path}: duplicate entries for key {fieldsets.text((step,))}"
            seen.add(step)
        yield from _problems(item, typed.items_of(shape), path + fieldsets.text((step,)))


def _problems_of_scalar(value: Any, shape: TypeDef, path: str) -> Iterator[str]:
    if shape.type in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield f"{path}: expected numeric (int or float), got {gotext.type_name(value)}"
    elif shape.type == "boolean" and not isinstance(value, bool):
        yield f"{path}: expected boolean, got &{{{gotext.value(value)}}}"
    elif shape.type == "string" and shape.format in ("", "byte") and not isinstance(value, str):
        yield f"{path}: expected string, got &value.valueUnstructured{{Value:{gotext.value(value)}}}"
    elif isinstance(value, dict | list):
        yield f"{path}: expected any scalar, got &{{{gotext.value(value)}}}"
