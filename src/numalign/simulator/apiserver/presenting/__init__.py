"""How the embedded API server shows itself to clients: discovery, OpenAPI, tables, and the protobuf they send."""
