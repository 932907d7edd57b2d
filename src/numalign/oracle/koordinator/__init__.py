"""Recorded cases of Koordinator."""
