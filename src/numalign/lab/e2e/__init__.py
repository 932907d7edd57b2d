"""Kubernetes' own end-to-end tests of scheduling, on a lab: with kube-scheduler and with numalign's scheduler.

`numalign lab e2e` calls `run`. `suite` runs the binary e2e.test and reads its report, `report` compares the outcomes
with each other and with the page in the documentation that lists them."""
