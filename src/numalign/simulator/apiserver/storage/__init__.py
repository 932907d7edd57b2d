"""The bottom layer of the embedded API server: the store, the resources, selectors, names and errors.

Every other package of the server imports it. It imports none of them."""
