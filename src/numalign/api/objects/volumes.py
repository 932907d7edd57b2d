"""Storage objects, with the fields that scheduling uses: volumes, claims, classes, and CSI objects of nodes.

Informers decode them; the volume rules in `placement` read them. The structs omit most of a volume, so they are never
written back: changes are patches."""

from typing import Final

import msgspec

from numalign.api.decode.quantity import Quantity
from numalign.api.decode.structs import Int32, Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import (
    AwsElasticBlockStore,
    AzureDisk,
    AzureFile,
    CinderDisk,
    GcePersistentDisk,
    NodeSelector,
    PortworxVolume,
    ResourceList,
    ResourceRequirements,
    VsphereDisk,
)
from numalign.api.objects.selectors import LabelSelector

STORAGE: Final = "storage"
FILESYSTEM: Final = "Filesystem"
AVAILABLE: Final = "Available"
LOST: Final = "Lost"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"


class ClaimReference(Wire, frozen=True):
    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class VolumeNodeAffinity(Wire, frozen=True):
    required: NodeSelector | None = None


class CsiVolumeSource(Wire, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Wire, frozen=True):
    capacity: ResourceList = msgspec.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""
    node_affinity: VolumeNodeAffinity = VolumeNodeAffinity()
    csi: CsiVolumeSource | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    cinder: CinderDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    vsphere_volume: VsphereDisk | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolumeStatus(Wire, frozen=True):
    phase: str = ""


class PersistentVolume(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def class_name(self) -> str:
        return self.metadata.annotations.get(CLASS_ANNOTATION, self.spec.storage_class_name)

    @property
    def size(self) -> Quantity | None:
        return self.spec.capacity.get(STORAGE)


class PersistentVolumeClaimSpec(Wire, frozen=True):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ResourceRequirements = ResourceRequirements()
    volume_name: str = ""
    storage_class_name: str = ""
    volume_mode: str = FILESYSTEM
    volume_attributes_class_name: str = ""


class PersistentVolumeClaimStatus(Wire, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def class_name(self) -> str:
        return self.metadata.annotations.get(CLASS_ANNOTATION, self.spec.storage_class_name)

    @property
    def size(self) -> Quantity | None:
        return self.spec.resources.requests.get(STORAGE)

    @property
    def is_bound(self) -> bool:
        """Whether the volume controller has completed the binding, too (kube-scheduler spec 1.17)."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def selected_node(self) -> str | None:
        """The node for which the volume is provisioned, once a scheduler has chosen one."""
        return self.metadata.annotations.get(SELECTED_NODE)


class TopologyRequirement(Wire, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Wire, frozen=True):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeNodeResources(Wire, frozen=True):
    count: Int32 | None = None


class CSINodeDriver(Wire, frozen=True):
    name: str = ""
    allocatable: VolumeNodeResources = VolumeNodeResources()


class CSINodeSpec(Wire, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Wire, frozen=True):
    """The CSI drivers that run on the node of the same name, and how many volumes each can attach."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()

    @property
    def migrated_plugins(self) -> frozenset[str]:
        """Built-in volume plugins whose volumes CSI drivers serve there."""
        return frozenset(filter(None, self.metadata.annotations.get(MIGRATED_PLUGINS, "").split(",")))


class CSIDriverSpec(Wire, frozen=True):
    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Wire, frozen=True):
    """The capacity that a driver can still provision of one class, for the nodes that the topology selects."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    @property
    def largest_volume(self) -> Quantity | None:
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size


class AttachmentSource(Wire, frozen=True):
    persistent_volume_name: str = ""


class VolumeAttachmentSpec(Wire, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
