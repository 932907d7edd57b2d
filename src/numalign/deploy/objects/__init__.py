"""The objects of each component of an installation. `render` puts them together; nobody else calls them."""
