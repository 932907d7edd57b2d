"""The embedded API server's HTTP side: connections, routes and content negotiation."""
