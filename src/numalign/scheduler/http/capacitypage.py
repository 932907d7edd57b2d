"""POST /v1/capacity: how many more pods nodes and node templates admit.

The extender's server and the scheduler's pages serve it, each behind its own authentication and limits. A body that
cannot be read, or that asks for something unknown, gets 400 and says why."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from numalign.api.decode import decode
from numalign.api.decode.structs import ENCODER
from numalign.api.errors import BadObject
from numalign.process.serve import PageResponse
from numalign.scheduler.capacity.messages import CapacityRequest
from numalign.scheduler.capacity.service import CapacityService

PATH: Final = "/v1/capacity"
JSON: Final = "application/json"


async def answered(service: CapacityService, body: bytes) -> PageResponse:
    try:
        found = await service.answer(decode.decode(CapacityRequest, body))
    except BadObject as problem:
        return PageResponse(f"{problem}\n", HTTPStatus.BAD_REQUEST)
    return PageResponse(ENCODER.encode(found), content_type=JSON)
