"""Objects that stand behind pods, as far as the stock scheduler looks at them: services, controllers, namespaces.

Informers make these through `decode`. Spreading by default finds out from them which pods belong together; pod
affinity reads the labels of namespaces.
"""

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.selectors import LabelSelector


class Namespace(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class PlainSelection(Wire, frozen=True):
    selector: dict[str, str] | None = None


class Selection(Wire, frozen=True):
    selector: LabelSelector | None = None


class Service(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PlainSelection = PlainSelection()


class ReplicationController(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PlainSelection = PlainSelection()


class ReplicaSet(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Selection = Selection()


class StatefulSet(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Selection = Selection()
