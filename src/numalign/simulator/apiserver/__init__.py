"""The embedded API server: `api.Api` is the door inside the process, `server` the one over HTTP."""
