"""All objects of an installation, the operator's included, in the order in which they have to be applied. Pure.

`numalign deploy` and tests of the chart call `objects`. The operator itself calls `render`, for its operands."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from numalign.api.decode import fields
from numalign.api.errors import BadObject
from numalign.deploy import render
from numalign.deploy.model import Values
from numalign.deploy.operator import install
from numalign.deploy.release import Release

COMPONENTS: Final = (*render.COMPONENTS, install.NAME)


def objects(values: Values, release: Release, components: Collection[str] = ()) -> list[dict[str, Any]]:
    """The objects of these components; of all if none is named."""
    for name in components:
        if name not in COMPONENTS:
            raise BadObject("Component", name, "", f"there is none of this name; {fields.suggestion(name, COMPONENTS)}")
    others = [name for name in components if name != install.NAME]
    made = render.render(values, release, others) if others or not components else []
    if not components or install.NAME in components:
        made = [*made, *install.component(values, release)]
    return sorted(made, key=lambda each: render.ORDER.index(each["kind"]))
