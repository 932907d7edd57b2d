"""In which form a client wants objects: as they are, as a table, or only their metadata.

The Accept header lists forms in the order of preference, most of them with a plain one at the end. Protobuf is never
sent: whoever accepts nothing else gets 406, as no client of ours does."""

from functools import lru_cache
from typing import Final, Literal

from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError

Form = Literal["plain", "table", "partial", "partial list", "yaml"]
PLAIN: Final = ("", "*/*", "application/*", "application/json")
META: Final = "meta.k8s.io"
TRANSFORMED: Final[dict[str, Form]] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial list",
}
AVAILABLE: Final = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/json;stream=watch"
)
ONLY: Final = "only the following media types are accepted: application/json, application/yaml"


@lru_cache(maxsize=256)
def form(accept: str) -> Form:
    """The first that can be had; raises StatusError 406."""
    for choice in accept.split(","):
        found = _form(choice.strip())
        if found is not None:
            return found
    raise not_acceptable(ONLY if "as=" in accept else AVAILABLE)


def not_acceptable(message: str) -> StatusError:
    return errors.not_acceptable(message)


def _form(choice: str) -> Form | None:
    media, *parameters = (part.strip() for part in choice.split(";"))
    said = dict(part.partition("=")[::2] for part in parameters)
    if media == "application/yaml" and "as" not in said:
        return "yaml"
    if media not in PLAIN:
        return None
    if "as" not in said:
        return "plain"
    if (said.get("g"), said.get("v")) != (META, "v1"):
        return None
    return TRANSFORMED.get(said["as"])
