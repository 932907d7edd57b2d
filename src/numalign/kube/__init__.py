"""HTTP to an API server: client, informers, leader election and events, on asyncio, httptools and msgspec.

Decisions are separate from I/O: `request`, `watch.watch`, `watch.store`, `leader.lease` and `events.events` take time
as an argument and touch no socket. `transport`, `client`, `watch.informer`, `leader.leading` and `events.recorder`
perform what they decide. No other package speaks HTTP to Kubernetes."""
