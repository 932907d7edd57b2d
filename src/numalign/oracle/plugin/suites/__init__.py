"""Recorded cases of the scheduler plugin, by the part of the plugin that they test."""
