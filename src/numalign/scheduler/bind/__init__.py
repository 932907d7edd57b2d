"""Binds placed pods and handles the results of bind calls."""
