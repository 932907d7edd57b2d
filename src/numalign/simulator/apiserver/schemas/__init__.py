"""What the fields of API objects look like: the built-in kinds by a generated table, custom ones by their own schema.

`shapes` is the common description; `builtin` and `crds` make it; patches, admission and OpenAPI read it."""
