// Package nfd asks the packages of node-feature-discovery's topology updater.
package nfd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2/helper/attribute"
	"github.com/k8stopologyawareschedwg/podfingerprint"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/node-feature-discovery/pkg/resourcemonitor"
	"sigs.k8s.io/node-feature-discovery/pkg/topologypolicy"
	"sigs.k8s.io/node-feature-discovery/pkg/utils"

	"numalign.io/lab/exporter/node"
)

// Suites are the tables that the updater answers.
func Suites() node.Suites {
	return node.Suites{
		"updater.aggregate":    node.Of(aggregate),
		"updater.scanner":      node.Of(scan),
		"updater.exclude_list": node.Of(exclude),
		"updater.policy_name":  node.Of(policy),
	}
}

type held struct {
	Name string   `json:"name"`
	Data []string `json:"data"`
	Numa []int    `json:"numa"`
}

type container struct {
	Name      string `json:"name"`
	Resources []held `json:"resources"`
}

type pod struct {
	Name       string      `json:"name"`
	Namespace  string      `json:"namespace"`
	Containers []container `json:"containers"`
}

func aggregate(row struct {
	Topology    node.Topology
	Capacity    map[string]map[core.ResourceName]int64 `json:"memory_capacity"`
	Allocatable node.Allocatable
	Pods        []pod
	Exclude     []string
}) (any, error) {
	capacity := utils.NumaMemoryResources{}
	for name, amounts := range row.Capacity {
		zone, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		capacity[zone] = amounts
	}
	left := resourcemonitor.NewExcludeResourceList(map[string][]string{"*": row.Exclude}, "")
	aggregator := resourcemonitor.NewResourcesAggregatorFromData(row.Topology.Info(), row.Allocatable.Response(), capacity, left)
	return node.Columns{"zones": node.Zones(aggregator.Aggregate(gathered(row.Pods)))}, nil
}

func gathered(pods []pod) []resourcemonitor.PodResources {
	var found []resourcemonitor.PodResources
	for _, each := range pods {
		made := resourcemonitor.PodResources{Name: each.Name, Namespace: each.Namespace}
		for _, c := range each.Containers {
			own := resourcemonitor.ContainerResources{Name: c.Name}
			for _, h := range c.Resources {
				own.Resources = append(own.Resources, resourcemonitor.ResourceInfo{
					Name: core.ResourceName(h.Name), Data: h.Data, NumaNodeIds: h.Numa,
				})
			}
			made.Containers = append(made.Containers, own)
		}
		found = append(found, made)
	}
	return found
}

// known is a pod as the API server has it.
type known struct {
	Name       string
	Namespace  string
	QOS        core.PodQOSClass
	Containers []wanted
	Init       []wanted
}

type wanted struct {
	Name             string
	Requests, Limits map[core.ResourceName]string
}

func (k known) object() (*core.Pod, error) {
	made := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: k.Name, Namespace: k.Namespace}}
	made.Status.QOSClass = k.QOS
	for place, list := range [][]wanted{k.Containers, k.Init} {
		for _, each := range list {
			requests, err := amounts(each.Requests)
			if err != nil {
				return nil, err
			}
			limits, err := amounts(each.Limits)
			if err != nil {
				return nil, err
			}
			c := core.Container{Name: each.Name, Resources: core.ResourceRequirements{Requests: requests, Limits: limits}}
			if place == 0 {
				made.Spec.Containers = append(made.Spec.Containers, c)
			} else {
				made.Spec.InitContainers = append(made.Spec.InitContainers, c)
			}
		}
	}
	return made, nil
}

func amounts(texts map[core.ResourceName]string) (core.ResourceList, error) {
	list := core.ResourceList{}
	for name, text := range texts {
		amount, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list[name] = amount
	}
	return list, nil
}

func scan(row struct {
	Namespace   string
	Fingerprint bool `json:"fingerprint_enabled"`
	Silent      bool `json:"list_error"`
	Listed      []node.Pod
	APIPod      *known `json:"api_pod"`
}) (any, error) {
	api, store := fake.NewSimpleClientset(), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if row.APIPod != nil {
		object, err := row.APIPod.object()
		if err != nil {
			return nil, err
		}
		if _, err := api.CoreV1().Pods(object.Namespace).Create(context.Background(), object, meta.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	kubelet := node.Kubelet{Pods: row.Listed, Silent: row.Silent}
	scanner, err := resourcemonitor.NewPodResourcesScanner(row.Namespace, kubelet, listers.NewPodLister(store), api, row.Fingerprint)
	if err != nil {
		return nil, err
	}
	found, err := scanner.Scan()
	if err != nil {
		return node.Columns{"watched": nil, "fingerprint": nil, "error": true}, nil
	}
	var signature any
	if attribute, told := attribute.Get(found.Attributes, podfingerprint.Attribute); told {
		signature = attribute.Value
	}
	return node.Columns{"watched": told(found.PodResources), "fingerprint": signature, "error": false}, nil
}

func told(pods []resourcemonitor.PodResources) []pod {
	found := []pod{}
	for _, each := range pods {
		made := pod{Name: each.Name, Namespace: each.Namespace, Containers: []container{}}
		for _, c := range each.Containers {
			own := container{Name: c.Name, Resources: []held{}}
			for _, r := range c.Resources {
				own.Resources = append(own.Resources, held{string(r.Name), r.Data, r.NumaNodeIds})
			}
			made.Containers = append(made.Containers, own)
		}
		found = append(found, made)
	}
	return found
}

func exclude(row struct {
	Config map[string][]string
	Node   string
	Asked  []string
}) (any, error) {
	list := resourcemonitor.NewExcludeResourceList(row.Config, row.Node)
	columns := map[bool][]string{true: {}, false: {}}
	for _, name := range row.Asked {
		isOut := list.IsExcluded(core.ResourceName(name))
		columns[isOut] = append(columns[isOut], name)
	}
	return node.Columns{"excluded": columns[true], "kept": columns[false]}, nil
}

func policy(row struct{ Policy, Scope string }) (any, error) {
	return node.Columns{"name": topologypolicy.DetectTopologyPolicy(row.Policy, row.Scope)}, nil
}
