package plugin

import (
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"numalign.io/lab/reference/oracle/apiserver"
)

// handle is what the plugin asks of the scheduler: clients, the shared informers and the profile's name. It says that it is
// a whole framework because foreign pods are detected only then; asked for anything else it panics.
type handle struct {
	framework.Framework
	config    *rest.Config
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	profile   string
}

func newHandle(server *apiserver.Server, profile string) (*handle, error) {
	core, err := corev1.NewForConfig(server.Config())
	if err != nil {
		return nil, err
	}
	client := clientset{core: core}
	// The scheduler's own factory: it never sees pods that have ended.
	return &handle{config: server.Config(), client: client, informers: scheduler.NewInformerFactory(client, 0), profile: profile}, nil
}

func (h *handle) KubeConfig() *rest.Config                               { return h.config }
func (h *handle) ClientSet() kubernetes.Interface                        { return h.client }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) ProfileName() string                                    { return h.profile }

// clientset has only the core group: making all the others takes longer than a history.
type clientset struct {
	kubernetes.Interface
	core corev1.CoreV1Interface
}

func (c clientset) CoreV1() corev1.CoreV1Interface { return c.core }
