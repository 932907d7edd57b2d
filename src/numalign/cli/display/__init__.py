"""Display."""
