"""Serves cluster-autoscaler's gRPC expander: `grpcplugin.Expander/BestOptions`.

`http.serving` listens with it. cluster-autoscaler verifies the server's certificate (`--grpc-expander-cert`) and shows
none itself, so clients are not authenticated: the answer says nothing about pods or nodes of the cluster but which
group is best, and a request takes a limited amount of memory and lets other tasks run. A request that cannot be read
gets INVALID_ARGUMENT; cluster-autoscaler then goes on without the expander."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from numalign.api.decode.protobuf import BadProtobuf
from numalign.api.errors import BadObject, clipped
from numalign.process import rpc
from numalign.scheduler.capacity import expandermessages
from numalign.scheduler.capacity.expander import Expander

LOG: Final = logging.getLogger(__name__)
SERVICE: Final = "grpcplugin.Expander"
LARGEST: Final = 64 << 20
"""Bytes of a request: every option has all of its pods."""
CLIENTS: Final = 2
"""Requests at a time; a cluster has one cluster-autoscaler that asks."""
NOT_SYNCED: Final = "the caches of the scheduler are not synced yet"


@asynccontextmanager
async def serving(
    expander: Expander,
    address: tuple[str, int],
    certificate: tuple[bytes, bytes] | None,
    is_synced: Callable[[], bool],
) -> AsyncIterator[int]:
    """Serves until the block is left; yields the port. `certificate`: chain and key in PEM; None: without TLS."""

    async def best_options(request: bytes) -> bytes:
        if not is_synced():
            raise rpc.CallFailed("UNAVAILABLE", NOT_SYNCED)
        try:
            # A thread, because a large request takes seconds; other tasks have their turns meanwhile.
            asked = await asyncio.to_thread(expandermessages.decode_request, request)
            found = await expander.best_options(asked)
        except (BadObject, BadProtobuf) as problem:
            raise rpc.CallFailed("INVALID_ARGUMENT", str(problem)) from None
        for each in found:
            LOG.info("Kept node group %s: %s", clipped(each.option.group), each.says)
        return expandermessages.encode_response([(each.option, each.says) for each in found])

    service = rpc.Service(SERVICE, {"BestOptions": best_options})
    server = rpc.NetworkServer(address, certificate, service, largest=LARGEST, at_once=CLIENTS)
    await server.start()
    try:
        yield server.port
    finally:
        await server.stop(1.0)
