"""A device plugin that offers made-up devices with zones."""
