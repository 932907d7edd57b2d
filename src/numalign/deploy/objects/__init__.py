"""The objects of each component of an installation. Only `render` calls them."""
