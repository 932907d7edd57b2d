"""Credentials: kubeconfig, in-cluster accounts and exec plugins."""
