"""Which nodes a shape fits on, kept per shape and followed as rows change."""
