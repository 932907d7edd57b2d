"""Volumes as a pod names them, as far as scheduling looks at them.

Parts of `PodSpec`. Claims, and the few kinds of inline disk that can be in one place only, decide where a pod can run;
all other kinds are read as a volume with nothing but a name. The objects that claims point at are in `volumes`.
"""

import msgspec

from numalign.api.decode.structs import Wire


class ClaimVolume(Wire, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class EphemeralVolume(Wire, frozen=True):
    """A claim of the pod's own, named after pod and volume; a controller makes it from the template."""


class ImageVolume(Wire, frozen=True):
    reference: str = ""


class CsiVolume(Wire, frozen=True):
    driver: str = ""


class GcePersistentDisk(Wire, frozen=True):
    pd_name: str = ""
    partition: int = 0
    read_only: bool = False


class AwsElasticBlockStore(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    partition: int = 0
    read_only: bool = False


class IscsiDisk(Wire, frozen=True):
    iqn: str = ""
    read_only: bool = False


class RbdImage(Wire, frozen=True):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CinderDisk(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class AzureDisk(Wire, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class AzureFile(Wire, frozen=True):
    secret_name: str = ""
    share_name: str = ""


class VsphereDisk(Wire, frozen=True):
    volume_path: str = ""


class PortworxVolume(Wire, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")


class Volume(Wire, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None
    csi: CsiVolume | None = None
    gce_persistent_disk: GcePersistentDisk | None = None
    aws_elastic_block_store: AwsElasticBlockStore | None = None
    iscsi: IscsiDisk | None = None
    rbd: RbdImage | None = None
    cinder: CinderDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    vsphere_volume: VsphereDisk | None = None
    portworx_volume: PortworxVolume | None = None
