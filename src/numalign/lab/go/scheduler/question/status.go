package question

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
)

func stated(status *fwk.Status) Status {
	reasons := slices.Clone(status.Reasons())
	slices.Sort(reasons)
	if reasons == nil {
		reasons = []string{}
	}
	return Status{Plugin: status.Plugin(), Code: status.Code().String(), Reasons: reasons}
}

func narrowed(result *fwk.PreFilterResult, status *fwk.Status) Narrowed {
	said := Narrowed{Status: Status{Code: fwk.Success.String(), Reasons: []string{}}}
	if status != nil {
		said.Status = stated(status)
	}
	if !result.AllNodes() {
		said.Nodes = sets.List(result.NodeNames)
	}
	return said
}
