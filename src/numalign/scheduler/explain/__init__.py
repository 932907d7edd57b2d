"""Answers why a pod waits or where it sits, and what would make it fit."""
