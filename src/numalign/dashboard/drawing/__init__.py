"""Makes SVG of the structs of `moment`; no module knows of requests."""
