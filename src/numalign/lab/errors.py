"""The error of all lab operations."""


class LabError(Exception):
    """A lab operation failed. The text names the part and the remedy."""
