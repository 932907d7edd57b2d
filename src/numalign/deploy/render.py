"""Renders the objects of an installation from its values: pure, in the order in which they have to be applied.

`numalign deploy`, the operator and tests call `render`. The Helm chart makes the same objects by its own templates,
and tests compare both. The same values and release always give the same objects."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from numalign.api.decode import fields
from numalign.api.errors import BadObject
from numalign.deploy import order
from numalign.deploy.model import Values
from numalign.deploy.objects import agent, cluster, gc, scheduler
from numalign.deploy.objects.common import Context
from numalign.deploy.release import Release

__all__ = ["COMPONENTS", "Release", "render"]

COMPONENTS: Final = (cluster.NAMESPACE, cluster.CRDS, scheduler.NAME, agent.NAME, gc.NAME, cluster.MONITORS)
"""Values of the label app.kubernetes.io/component."""
LABEL: Final = "app.kubernetes.io/component"
ORDER: Final = order.KINDS


def render(values: Values, release: Release, components: Collection[str] = ()) -> list[dict[str, Any]]:
    """The objects of these components; of all if none is named."""
    for name in components:
        if name not in COMPONENTS:
            raise BadObject("Component", name, "", f"there is none of this name; {fields.suggestion(name, COMPONENTS)}")
    context = Context(values, release)
    made = [
        *cluster.objects(context),
        *scheduler.objects(context),
        *agent.objects(context),
        *gc.objects(context),
    ]
    wanted = [each for each in made if not components or each["metadata"]["labels"][LABEL] in components]
    return sorted(wanted, key=lambda each: ORDER.index(each["kind"]))
