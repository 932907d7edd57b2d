"""The verbs of the API server, on stored objects: create, update, patch, delete, list, watch, and subresources.

`api.Api` offers them in the process; `http.routes` calls the modules directly. Nothing here knows sockets or HTTP."""
