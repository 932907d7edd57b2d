"""The errors of the API server: one exception, and a function for each reason.

Every package below `http` raises `StatusError`; its `status()` is the body of the response. The messages are those of
the real API server, because people and programs read them."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.trees import Tree

NO_SUCH_PATH: Final = "the server could not find the requested resource"


class StatusCause(Struct, frozen=True):
    """What is wrong with one field; validation and schemas return these."""

    field: str
    reason: str
    message: str

    def tree(self) -> Tree:
        kept = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in kept.items() if value}


class StatusError(Exception):
    def __init__(
        self, code: int, reason: str, message: str, details: Tree | None = None, list_meta: Tree | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.list_meta = list_meta

    def status(self) -> Tree:
        body: Tree = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta or {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            body["details"] = self.details
        return {key: value for key, value in body.items() if value != ""} | {"code": self.code}


class TypeMismatch(StatusError):
    """A field has another type than its kind declares: 400 for an object, 422 for the result of a patch."""

    def __init__(self, resource: Resource, why: str, got: str = "", wanted: str = "") -> None:
        kind = resource.kind
        super().__init__(
            400, "BadRequest", f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}'
        )
        self.why = why
        self.got = got
        self.wanted = wanted


def details(resource: Resource, name: str = "", causes: Sequence[StatusCause] = ()) -> Tree:
    found: Tree = {"name": name, "group": resource.group, "kind": resource.plural}
    return _filled(found | {"causes": [cause.tree() for cause in causes]})


def not_found(resource: Resource, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{resource.qualified} "{name}" not found', details(resource, name))


def no_such_path() -> StatusError:
    return StatusError(404, "NotFound", NO_SUCH_PATH, {})


def already_exists(resource: Resource, name: str, *, leaving: bool = False) -> StatusError:
    message = f'{"object is being deleted: " if leaving else ""}{resource.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, details(resource, name))


def conflict(resource: Resource, name: str, why: str, causes: Sequence[StatusCause] = ()) -> StatusError:
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, details(resource, name, causes))


def invalid(resource: Resource, name: str, causes: Iterable[StatusCause]) -> StatusError:
    """The 422 of an invalid object: `Pod "web" is invalid: spec.containers: Required value`."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    found = list(causes)
    about: Tree = {"name": name, "group": resource.group, "kind": resource.kind}
    about = _filled(about | {"causes": [cause.tree() for cause in found]})
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {summary(found)}', about)


def summary(causes: Sequence[StatusCause]) -> str:
    """All causes in one line, without duplicates."""
    lines = list(dict.fromkeys(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes))
    return lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def gone(message: str, list_meta: Tree | None = None) -> StatusError:
    return StatusError(410, "Expired", message, list_meta=list_meta)


def forbidden(resource: Resource, name: str, why: str) -> StatusError:
    what = f'{resource.qualified} "{name}"' if name else resource.qualified
    return StatusError(403, "Forbidden", f"{what} is forbidden: {why}", details(resource, name))


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def unsupported_media_type(message: str, details: Tree | None = None) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message, details)


def not_acceptable(message: str) -> StatusError:
    return StatusError(406, "NotAcceptable", message)


def too_large(message: str) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", message)


def too_many_requests(message: str, causes: Sequence[StatusCause] = (), retry_after: int = 0) -> StatusError:
    about: Tree = {"causes": [cause.tree() for cause in causes], "retryAfterSeconds": retry_after}
    return StatusError(429, "TooManyRequests", message, _filled(about))


def internal(message: str) -> StatusError:
    about = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", about)


def not_served(what: str) -> StatusError:
    """The 501 for what neither the product nor everyday kubectl needs."""
    return StatusError(501, "NotImplemented", f"the embedded API server does not serve {what}", {})


def _filled(tree: Tree) -> Tree:
    return {key: value for key, value in tree.items() if value}
