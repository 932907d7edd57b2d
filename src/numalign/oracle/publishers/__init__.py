"""Our agent and reports beside the real publishers, RTE and NFD."""
