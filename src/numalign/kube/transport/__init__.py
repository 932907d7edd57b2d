"""HTTP to an API server: connections, TLS, proxies, deadlines and rate limits."""
