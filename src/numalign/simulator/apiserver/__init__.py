"""The embedded API server: `verbs.api.Api` is its in-process interface, `http.server` serves it over HTTP."""
