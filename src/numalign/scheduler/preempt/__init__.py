"""Finds victims, evicts them and reserves their resources for the preemptor."""
