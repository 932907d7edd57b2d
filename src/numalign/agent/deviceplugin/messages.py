"""The messages of the kubelet's device plugin API, version v1beta1, as tables.

`deviceplugin` reads requests and writes answers with them, `devicepluginserving` the registration; the tests' kubelet
uses the other direction.
"""

from typing import Final

from numalign.api.decode.protomessages import TEXTS, Field, Message

VERSION: Final = "v1beta1"
REGISTRATION: Final = "v1beta1.Registration"
PLUGIN: Final = "v1beta1.DevicePlugin"
HEALTHY: Final = "Healthy"
UNHEALTHY: Final = "Unhealthy"

OPTIONS: Final[Message] = {1: Field("pre_start", "bool"), 2: Field("preferred_allocation", "bool")}
REGISTER: Final[Message] = {
    1: Field("version", "string"),
    2: Field("endpoint", "string"),
    3: Field("resource", "string"),
    4: Field("options", OPTIONS),
}

ZONE: Final[Message] = {1: Field("id", "int")}
ZONES: Final[Message] = {1: Field("nodes", ZONE, many=True)}
DEVICE: Final[Message] = {1: Field("id", "string"), 2: Field("health", "string"), 3: Field("topology", ZONES)}
DEVICES: Final[Message] = {1: Field("devices", DEVICE, many=True)}

IDS: Final[Message] = {1: Field("ids", "string", many=True)}
"""Also what PreStartContainer asks with."""
PREFERENCE: Final[Message] = {
    1: Field("available", "string", many=True),
    2: Field("must_include", "string", many=True),
    3: Field("size", "int"),
}
PREFERENCES: Final[Message] = {1: Field("containers", PREFERENCE, many=True)}
PREFERRED: Final[Message] = {1: Field("containers", IDS, many=True)}

ALLOCATE: Final[Message] = {1: Field("containers", IDS, many=True)}
MOUNT: Final[Message] = {
    1: Field("container", "string"),
    2: Field("host", "string"),
    3: Field("read_only", "bool"),
}
DEVICE_FILE: Final[Message] = {
    1: Field("container", "string"),
    2: Field("host", "string"),
    3: Field("permissions", "string"),
}
CDI: Final[Message] = {1: Field("name", "string")}
CONTAINER: Final[Message] = {
    1: Field("env", TEXTS, many=True),
    2: Field("mounts", MOUNT, many=True),
    3: Field("files", DEVICE_FILE, many=True),
    4: Field("annotations", TEXTS, many=True),
    5: Field("cdi", CDI, many=True),
}
ALLOCATED: Final[Message] = {1: Field("containers", CONTAINER, many=True)}
