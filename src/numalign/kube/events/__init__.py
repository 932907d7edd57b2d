"""Event correlation and recording."""
