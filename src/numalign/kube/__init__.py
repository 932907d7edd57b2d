"""All HTTP to an API server: client, informers, leadership and events, on asyncio, httptools and msgspec.

What can be decided without a socket is decided without one: `request`, `retries`, `watch`, `store`, `lease` and
`events` are values in, values out, with time as an argument; `transport`, `client`, `informer`, `leading` and
`recorder` perform what they say. Only this room speaks HTTP to Kubernetes."""
