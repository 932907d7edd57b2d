"""The HTTP/1.1 server of every process: `listen.listening` serves an application within `limits.Limits`.

`process.serve` builds pages on it, `simulator.apiserver.http` the embedded API server."""
