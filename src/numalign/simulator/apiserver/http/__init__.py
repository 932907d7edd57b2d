"""The HTTP layer of the embedded API server: connections, routing, request bodies, responses, discovery and OpenAPI.

`server.serve` starts it for an `Api`. It is the top layer: no other package of the server imports it."""
