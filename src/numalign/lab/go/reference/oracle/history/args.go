package history

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/apis/config/scheme"
)

// argsKind is what a KubeSchedulerConfiguration's pluginConfig says or implies.
var argsKind = schema.GroupVersionKind{Group: "kubescheduler.config.k8s.io", Version: "v1", Kind: "NodeResourceTopologyMatchArgs"}

// readArgs decodes the plugin's arguments as kube-scheduler does: strictly, with defaults.
func readArgs(text json.RawMessage) (*config.NodeResourceTopologyMatchArgs, error) {
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(text, &argsKind, nil)
	if err != nil {
		return nil, err
	}
	args, ours := decoded.(*config.NodeResourceTopologyMatchArgs)
	if !ours {
		return nil, fmt.Errorf("args are %T", decoded)
	}
	return args, nil
}
