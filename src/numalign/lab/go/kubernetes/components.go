// Package components keeps the modules of every component that is built here in go.mod: the binaries themselves are
// built from their own packages in k8s.io/kubernetes.
package components

import (
	_ "k8s.io/cri-client/pkg/fake"
	_ "k8s.io/kubectl/pkg/cmd"
	_ "k8s.io/kubernetes/cmd/kube-apiserver/app"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	_ "k8s.io/kubernetes/cmd/kube-proxy/app"
	_ "k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
)
