"""The families of recorded kubelet cases: one module each, with its schema and the model's answer."""
