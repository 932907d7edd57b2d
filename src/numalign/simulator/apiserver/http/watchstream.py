"""A watch on a connection: events as chunks of one response, with bookmarks and an orderly end.

`application` makes a `WatchStream` for a request, and its connection opens it. Events of one turn of the event loop are
sent in one write. The bytes of an event are made once and shared by all watchers that receive plain JSON. A watcher
that does not read is disconnected; it can list and watch again."""

import asyncio
from typing import Final

from numalign.process.http.connection import Connection
from numalign.simulator import trees
from numalign.simulator.apiserver.http import requests, responses
from numalign.simulator.apiserver.http.requests import WatchRequest
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.verbs import conversion
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.apiserver.verbs.watch import INITIAL_END, Watch, WatchEvent
from numalign.simulator.trees import Tree

HEAD: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
END: Final = b"0\r\n\r\n"
BOOKMARK_EVERY: Final = 60.0
LINE: Final = len(b'{"type":"","object":}\n')


class WatchStream:
    def __init__(self, state: ServerState, watch: WatchRequest) -> None:
        """Raises StatusError if the client accepts no form that the server has."""
        self._state = state
        self._request = watch
        self._loop = asyncio.get_running_loop()
        self._form = responses.negotiate(watch.accept)
        self._had_columns = False
        self._waiting: list[bytes] = []
        self._timers: list[asyncio.TimerHandle] = []
        self._watch = Watch(state.store, watch.resource, watch.predicate, self._take)
        self._is_open = True

    def open(self, connection: Connection) -> None:
        """Responds with an error if the watch cannot start; a version that is too old is reported within the stream."""
        watch, self._connection = self._request, connection
        try:
            first = self._watch.begin(watch.since)
        except StatusError as problem:
            if problem.code != 410:
                self.close()
                return connection.finish(requests.error_response(problem))
            connection.write(HEAD + _chunk({"type": "ERROR", "object": problem.status()}) + END)
            return self._finish()
        self._waiting = [HEAD, *(self._encoded(seen) for seen in first)]
        if watch.since.initial and watch.bookmarks:
            self._waiting.append(self._bookmark({INITIAL_END: "true"}))
        self._flush()
        self._timers = [self._loop.call_later(watch.seconds, self.end)]
        if watch.bookmarks:
            self._timers.append(self._loop.call_later(BOOKMARK_EVERY, self._mark))

    def end(self) -> None:
        """Ends the stream in order: at its timeout, or when the server stops."""
        if self._is_open:
            self._waiting.append(END)
            self._flush()
            self._finish()

    def close(self) -> None:
        """Stops the watch; the connection is closed or given up."""
        self._is_open = False
        self._watch.close()
        for timer in self._timers:
            timer.cancel()

    def _finish(self) -> None:
        self.close()
        self._connection.finish()

    def _take(self, seen: WatchEvent) -> None:
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(self._encoded(seen))

    def _flush(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        self._connection.write(b"".join(waiting))

    def _mark(self) -> None:
        self._waiting.append(self._bookmark({}))
        self._flush()
        self._timers[-1] = self._loop.call_later(BOOKMARK_EVERY, self._mark)

    def _encoded(self, seen: WatchEvent) -> bytes:
        if self._form not in ("plain", "yaml"):
            tree = trees.decoded(conversion.to_version(self._request.resource, seen.entry.data))
            return _chunk({"type": seen.kind, "object": self._formed(tree)})
        if seen.event is None:
            return self._line(seen)
        # Watchers of the same apiVersion share the bytes.
        chunks, key = seen.event.chunks, self._request.resource.api_version
        if key not in chunks:
            chunks[key] = self._line(seen)
        return chunks[key]

    def _line(self, seen: WatchEvent) -> bytes:
        data = conversion.to_version(self._request.resource, seen.entry.data)
        return b'%x\r\n{"type":"%b","object":%b}\n\r\n' % (
            len(data) + len(seen.kind) + LINE,
            seen.kind.encode(),
            data,
        )

    def _formed(self, tree: Tree) -> Tree:
        if self._form != "table":
            return responses.partial_metadata(tree)
        include = responses.include_object({"includeObject": self._request.include})
        headers, self._had_columns = not self._had_columns, True
        return responses.table(self._state, self._request.resource, [tree], include=include, headers=headers)

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        resource = self._request.resource
        metadata: Tree = {"resourceVersion": str(self._state.store.version)}
        if annotations:
            metadata["annotations"] = annotations
        bare = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        if self._form in ("partial", "partial list"):
            bare = responses.partial_metadata(bare)
        return _chunk({"type": "BOOKMARK", "object": bare})


def _chunk(tree: Tree) -> bytes:
    data = trees.encoded(tree)
    return b"%x\r\n%b\n\r\n" % (len(data) + 1, data)
