"""What a client may take of a server. Every HTTP server of this project is bound by one `Limits`.

`listen` enforces the number of connections and sweeps for those whose time is up; `connection` enforces sizes."""

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    connections: int
    """At this number a new client displaces the connection that has waited longest for the rest of a request. Where
    every connection is being answered, the new client is disconnected."""
    body_bytes: int
    """A larger request is refused as soon as its Content-Length is known."""
    all_body_bytes: int = 256 << 20
    """Of all requests that are being received. A request beyond it is refused, and may be sent again."""
    head_bytes: int = 32 << 10
    """Request line and headers. Half the size always passes, one and a half never does."""
    head_seconds: float = 10.0
    """For the TLS handshake, and again for the head."""
    body_seconds: float = 30.0
    idle_seconds: float = 60.0
    """Between requests; 0: a connection serves one request."""
    waiting_requests: int = 1000
    """Pipelined requests that wait for the response before theirs."""
    waiting_bytes: int = 8 << 20
    """Size of the requests that wait."""
    read_seconds: float = 30.0
    read_rate: int = 64 << 10
    """Bytes per second that a client must read of a response, on average over `read_seconds`."""
    unsent_bytes: int = 32 << 20
    """Unsent bytes at which a stream is disconnected; one response may be larger."""
    all_unsent_bytes: int = 512 << 20
    """Unsent bytes of all connections at which the client that has left its response unread for longest is
    disconnected. The response of a single client may be larger."""
    linger_seconds: float = 2.0
    """For a refused client to read why, before its connection is closed. Its bytes are dropped meanwhile,
    at most `waiting_bytes`."""

    @property
    def tick(self) -> float:
        """Seconds between sweeps."""
        timed = (self.head_seconds, self.body_seconds, self.idle_seconds, self.read_seconds)
        return min(1.0, *(seconds / 4 for seconds in timed if seconds))
