"""Devkit."""
