"""Finds victims, evicts them and reserves their room for the preemptor."""
