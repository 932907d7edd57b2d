"""The pages: one module each, with ROUTES that `app` serves."""
