// Package component keeps the modules of kube-scheduler 1.34 in go.mod: the binary itself is built from its own package in
// k8s.io/kubernetes.
package component

import _ "k8s.io/kubernetes/cmd/kube-scheduler/app"
