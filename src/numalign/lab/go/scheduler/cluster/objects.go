package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
)

// Objects is all that the plugins can look at, in the order in which the scheduler got to know it. Objects are taken as they
// are: what the API server would default or check has to be there.
type Objects struct {
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods,omitempty"`
	Namespaces             []*v1.Namespace                 `json:"namespaces,omitempty"`
	Services               []*v1.Service                   `json:"services,omitempty"`
	ReplicationControllers []*v1.ReplicationController     `json:"replicationControllers,omitempty"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicaSets,omitempty"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulSets,omitempty"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes,omitempty"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims,omitempty"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses,omitempty"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers,omitempty"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities,omitempty"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments,omitempty"`
	DeviceClasses          []*resourcev1.DeviceClass       `json:"deviceClasses,omitempty"`
}

// Store puts the objects where the listers of the factory find them, and tells the resolver of device classes.
func (o *Objects) Store(factory informers.SharedInformerFactory, classes fwk.DeviceClassResolver) error {
	core, apps, storage := factory.Core().V1(), factory.Apps().V1(), factory.Storage().V1()
	fills := []error{
		fill(core.Nodes().Informer(), o.Nodes),
		fill(core.Namespaces().Informer(), o.Namespaces),
		fill(core.Services().Informer(), o.Services),
		fill(core.ReplicationControllers().Informer(), o.ReplicationControllers),
		fill(apps.ReplicaSets().Informer(), o.ReplicaSets),
		fill(apps.StatefulSets().Informer(), o.StatefulSets),
		fill(core.PersistentVolumes().Informer(), o.PersistentVolumes),
		fill(core.PersistentVolumeClaims().Informer(), o.PersistentVolumeClaims),
		fill(storage.StorageClasses().Informer(), o.StorageClasses),
		fill(storage.CSINodes().Informer(), o.CSINodes),
		fill(storage.CSIDrivers().Informer(), o.CSIDrivers),
		fill(storage.CSIStorageCapacities().Informer(), o.CSIStorageCapacities),
		fill(storage.VolumeAttachments().Informer(), o.VolumeAttachments),
		fill(factory.Resource().V1().DeviceClasses().Informer(), o.DeviceClasses),
	}
	for _, err := range fills {
		if err != nil {
			return err
		}
	}
	for _, class := range o.DeviceClasses {
		classes.(cache.ResourceEventHandler).OnAdd(class, true)
	}
	return nil
}

func fill[T any](informer cache.SharedIndexInformer, objects []T) error {
	for _, each := range objects {
		if err := informer.GetIndexer().Add(each); err != nil {
			return err
		}
	}
	return nil
}
