"""Everything that the server keeps at this moment, custom resources included.

Namespaces are emptied and garbage is collected over all of it."""

from collections.abc import Sequence

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.api import Api


def kept(api: Api) -> Sequence[Resource]:
    """One resource for each set of objects, however many versions show it."""
    homes: dict[tuple[str, str], Resource] = {}
    for resource in api.state.registry:
        if "list" in resource.verbs:
            homes.setdefault(resource.home, resource)
    return list(homes.values())
