"""Server-side tables for `kubectl get`."""
