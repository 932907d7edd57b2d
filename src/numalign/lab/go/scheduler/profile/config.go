package profile

import (
	"encoding/json"
	"fmt"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// Read completes and checks a profile as kube-scheduler does with its configuration file; without text it is the default
// profile.
func Read(text json.RawMessage) (*config.KubeSchedulerProfile, error) {
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	// What else a configuration has to say about clients and leadership does not matter here.
	file, err := json.Marshal(map[string]any{
		"apiVersion":     "kubescheduler.config.k8s.io/v1",
		"kind":           "KubeSchedulerConfiguration",
		"leaderElection": map[string]any{"leaderElect": false},
		"profiles":       []json.RawMessage{text},
	})
	if err != nil {
		return nil, err
	}
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode(file, nil, nil)
	if err != nil {
		return nil, err
	}
	configuration, is := decoded.(*config.KubeSchedulerConfiguration)
	if !is {
		return nil, fmt.Errorf("the configuration is %T", decoded)
	}
	if err := validation.ValidateKubeSchedulerConfiguration(configuration); err != nil {
		return nil, err
	}
	return &configuration.Profiles[0], nil
}
