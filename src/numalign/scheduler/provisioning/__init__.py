"""Answers ProvisioningRequests of a class of our own: whether the nodes have room for all pods of a request."""
