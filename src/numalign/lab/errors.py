"""What can go wrong in the lab, in a sentence that says what to do."""


class LabError(Exception):
    """A lab operation failed; the text names the piece and the remedy."""
