// Package texts asks the packages that both programs share: fingerprints, names of zones and lists of attributes.
package texts

import (
	"errors"

	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2/helper/attribute"
	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2/helper/numanode"
	"github.com/k8stopologyawareschedwg/podfingerprint"

	"numalign.io/lab/exporter/node"
)

// Suites are the tables that need no program at all.
func Suites() node.Suites {
	return node.Suites{
		"fingerprint.sign_derived":   node.Of(sign),
		"fingerprint.check":          node.Of(check),
		"fingerprint.version_compat": node.Of(version),
		"nrt.numa_id_to_name":        node.Of(nameOf),
		"nrt.numa_name_to_id":        node.Of(idOf),
		"nrt.attribute_get":          node.Of(get),
		"nrt.attribute_insert":       node.Of(insert),
		"nrt.attribute_merge":        node.Of(merge),
		"nrt.attribute_delete_all":   node.Of(deleteAll),
	}
}

type pods []struct{ Namespace, Name string }

func (p pods) fingerprint() *podfingerprint.Fingerprint {
	made := podfingerprint.NewFingerprint(len(p))
	for _, each := range p {
		// Nothing can go wrong with a name.
		_ = made.Add(each.Namespace, each.Name)
	}
	return made
}

func sign(row struct{ Pods pods }) (any, error) {
	return node.Columns{"fingerprint": row.Pods.fingerprint().Sign()}, nil
}

func check(row struct {
	Pods        pods
	Fingerprint string
}) (any, error) {
	return node.Columns{"error": reason(row.Pods.fingerprint().Check(row.Fingerprint))}, nil
}

func version(row struct{ Version string }) (any, error) {
	compatible, err := podfingerprint.IsVersionCompatible(row.Version)
	return node.Columns{"error": reason(err), "compatible": compatible}, nil
}

// reason is the tables' word for an error.
func reason(err error) any {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, podfingerprint.ErrMalformed):
		return "malformed"
	case errors.Is(err, podfingerprint.ErrIncompatibleVersion):
		return "incompatible-version"
	case errors.Is(err, podfingerprint.ErrSignatureMismatch):
		return "mismatch"
	}
	return err.Error()
}

func nameOf(row struct{ ID int }) (any, error) {
	name, err := numanode.IDToName(row.ID)
	if err != nil {
		return node.Columns{"name": nil, "error": true}, nil
	}
	return node.Columns{"name": name, "error": false}, nil
}

func idOf(row struct{ Name string }) (any, error) {
	id, err := numanode.NameToID(row.Name)
	if err != nil {
		return node.Columns{"id": nil, "error": true}, nil
	}
	return node.Columns{"id": id, "error": false}, nil
}

// listed is never null, as in the tables.
func listed(attributes v1alpha2.AttributeList) (any, error) {
	return node.Columns{"result": append(v1alpha2.AttributeList{}, attributes...)}, nil
}

func get(row struct {
	Attrs v1alpha2.AttributeList
	Name  string
}) (any, error) {
	found, told := attribute.Get(row.Attrs, row.Name)
	if !told {
		return node.Columns{"found": false, "value": nil}, nil
	}
	return node.Columns{"found": true, "value": found.Value}, nil
}

func insert(row struct {
	Attrs  v1alpha2.AttributeList
	Insert v1alpha2.AttributeInfo
}) (any, error) {
	return listed(attribute.Insert(row.Attrs, row.Insert))
}

func merge(row struct{ Existing, Updated v1alpha2.AttributeList }) (any, error) {
	return listed(attribute.Merge(row.Existing, row.Updated))
}

func deleteAll(row struct {
	Attrs v1alpha2.AttributeList
	Name  string
}) (any, error) {
	return listed(attribute.DeleteAll(row.Attrs, row.Name))
}
