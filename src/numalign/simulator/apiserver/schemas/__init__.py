"""The types of API objects: built-in kinds from a generated table, custom resources from their own schema.

`typedefs` is the common description. Patches, defaulting, validation, discovery and OpenAPI read it."""
