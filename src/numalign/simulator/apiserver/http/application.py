"""The API server as an application of `process.http`: checks the token, asks the router and opens watches.

`server` and `simulator.cluster` call `served`. The router answers a request at once, because no verb waits. A watch
occupies its connection until it ends."""

import gzip
import hmac
from typing import Final

from numalign.process.http.connection import Pending, Served
from numalign.process.http.limits import Limits
from numalign.process.http.messages import Request, Response
from numalign.process.http.origins import Hosts
from numalign.simulator.apiserver.http import requests
from numalign.simulator.apiserver.http.requests import WatchRequest
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.http.watchstream import WatchStream
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError

LIMITS: Final = Limits(connections=512, body_bytes=3 << 20)
MIN_COMPRESSED: Final = 128 * 1024
PUBLIC_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
UNAUTHORIZED: Final = StatusError(401, "Unauthorized", "Unauthorized")
REFUSALS: Final = {400: errors.bad_request, 413: errors.too_large}


def served(router: Router, token: str = "", hosts: Hosts | None = None, limits: Limits = LIMITS) -> Served:
    """Without a token every client is accepted. Browsers are kept out by the token or, over a socket, by `hosts`."""
    return Served(ApiServer(router, token), limits, hosts)


class ApiServer:
    headers: tuple[str, ...] = (
        "accept",
        "accept-encoding",
        "authorization",
        "content-type",
        "if-none-match",
        "user-agent",
    )
    added: tuple[tuple[str, str], ...] = (("Cache-Control", "no-cache, private"),)

    def __init__(self, router: Router, token: str) -> None:
        self._router = router
        self._authorization = f"Bearer {token}".encode() if token else b""

    def answer(self, request: Request) -> Response | Pending:
        if self._authorization and request.path not in PUBLIC_PATHS and not self._is_authorized(request):
            return requests.error_response(UNAUTHORIZED)
        found = self._router.answer(request)
        if not isinstance(found, Response):
            return self._opened(found)
        if len(found.body) > MIN_COMPRESSED and "gzip" in request.headers.get("accept-encoding", ""):
            packed = (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
            return Response(found.code, gzip.compress(found.body, 1), found.content_type, found.headers + packed)
        return found

    def _opened(self, watch: WatchRequest) -> Response | Pending:
        try:
            return WatchStream(self._router.state, watch)
        except StatusError as problem:
            return requests.error_response(problem)

    def refusal(self, code: int, why: str) -> Response:
        problem = REFUSALS[code](why) if code in REFUSALS else StatusError(code, "", why)
        return requests.error_response(problem)

    def _is_authorized(self, request: Request) -> bool:
        return hmac.compare_digest(request.headers.get("authorization", "").encode(), self._authorization)
