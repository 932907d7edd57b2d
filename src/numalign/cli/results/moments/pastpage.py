"""Makes one page of the dashboard from a recording, in a process of its own, and ends.

`past` starts it with the folder and the origin as arguments, writes the request to its standard input, and reads the
answer from its standard output. It calls no server and gets no token. It takes processor time that the scheduler
leaves, and no more memory than half of what the container has left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

from numalign.api.errors import BadObject
from numalign.cli.results.moments.past import ELSEWHERE, PATIENCE, Made, NoPage, Outcome
from numalign.cli.results.moments.sources import RecordedSource
from numalign.dashboard import app
from numalign.dashboard.past import AskedPage, PastPage
from numalign.process import asgi
from numalign.process.http.messages import Request

LOWEST: Final = 19
"""The lowest priority, as nice counts."""
LEAST_MEMORY: Final = 192 << 20
"""With less, not even a small recording can be read."""
MOST_MEMORY: Final = 1 << 30
GROUP: Final = Path("/sys/fs/cgroup")
"""Where a container finds the limits of its own control group."""
TOO_LARGE: Final = f"The recording needs more memory than the scheduler leaves for it. {ELSEWHERE}"


def main() -> None:
    folder, origin = sys.argv[1:]
    os.nice(LOWEST)
    # The scheduler ends the process earlier, unless it was killed itself.
    signal.alarm(round(2 * PATIENCE))
    asked, most = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=AskedPage), room(GROUP)
    found: Outcome = NoPage(TOO_LARGE)
    if most >= LEAST_MEMORY:
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        found = outcome(Path(folder), origin, asked)
    sys.stdout.buffer.write(msgspec.msgpack.encode(found))


def room(group: Path) -> int:
    """Bytes that the process may use: if the container ran out of memory, the kernel would end the scheduler, too."""
    with contextlib.suppress(OSError, ValueError):
        limit, used = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        return min(MOST_MEMORY, max(0, limit - used) // 2)
    return MOST_MEMORY


def outcome(folder: Path, origin: str, asked: AskedPage) -> Outcome:
    try:
        return Made(asyncio.run(_page(folder, origin, asked)))
    except BadObject as problem:
        return NoPage(str(problem))
    except OSError as problem:
        return NoPage(f"The recording cannot be read: {problem}. Try again in a moment.")
    except MemoryError:
        return NoPage(TOO_LARGE)
    except RuntimeError as problem:
        # The stack of a thread is memory, too.
        if "new thread" not in str(problem):
            raise
        return NoPage(TOO_LARGE)


async def _page(folder: Path, origin: str, asked: AskedPage) -> PastPage:
    source = RecordedSource(folder, origin, around=asked.at)
    # The path is decoded already, so it is not part of the target, which is decoded.
    request = Request("GET", b"?" + asked.query.encode("latin-1"), asked.headers)
    request.path = asked.path
    answer = await asgi.answered(app.application(source), request, asked.root, secure=False)
    location = next((value for name, value in answer.headers if name.lower() == "location"), "")
    return PastPage(answer.code, answer.body, answer.content_type, location)


if __name__ == "__main__":
    main()
