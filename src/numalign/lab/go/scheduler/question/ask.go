package question

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"numalign.io/lab/scheduler/cluster"
	"numalign.io/lab/scheduler/profile"
)

const family = "scheduler"

// Ask answers all questions of one case.
func Ask(given string, line []byte) (any, error) {
	if given != family {
		return nil, fmt.Errorf("family %q is not %q", given, family)
	}
	var c Case
	if err := json.Unmarshal(line, &c); err != nil {
		return nil, err
	}
	return c, c.answer()
}

func (c *Case) answer() error {
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	defer stop()
	configured, refused := profile.Read(c.Profile)
	if refused != nil {
		c.InitError = refused.Error()
		return nil
	}
	var objects cluster.Objects
	if err := json.Unmarshal(c.Snapshot, &objects); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	snapshot, err := objects.Snapshot(ctx)
	if err != nil {
		return err
	}
	factory := profile.Factory()
	built, refused := profile.New(ctx, configured, factory, snapshot)
	if refused != nil {
		c.InitError = refused.Error()
		return nil
	}
	if err := objects.Store(factory, built.Classes); err != nil {
		return err
	}
	nodes, err := snapshot.List()
	if err != nil {
		return err
	}
	for i := range c.Questions {
		if err := c.Questions[i].ask(ctx, built, nodes); err != nil {
			return fmt.Errorf("questions[%d]: %w", i, err)
		}
	}
	return nil
}

// cycle is the scheduling cycle of one pod, in which every plugin is asked about every node.
type cycle struct {
	*profile.Profile
	pod   *v1.Pod
	nodes []fwk.NodeInfo
	state fwk.CycleState
	// asked are the filters that have something to say.
	asked []fwk.FilterPlugin
}

func (q *Question) ask(ctx context.Context, built *profile.Profile, nodes []fwk.NodeInfo) error {
	pod, err := readPod(q.Pod)
	if err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	c := &cycle{Profile: built, pod: pod, nodes: nodes, state: framework.NewCycleState()}
	answer := &Answer{}
	q.Answer = answer
	answer.PreFilters = c.preFilters(ctx)
	answer.Skipped = sets.List(c.state.GetSkipFilterPlugins())
	answer.Filters = c.filters(ctx)
	feasible := c.verdicts(ctx, answer)
	if answer.PreFilter.Code == fwk.Success.String() {
		if answer.WhatIf, err = c.whatIfs(ctx, q.WhatIf); err != nil {
			return err
		}
	}
	if len(feasible) > 0 {
		answer.Scores = c.scores(ctx, feasible)
	}
	return nil
}

func (c *cycle) preFilters(ctx context.Context) map[string]Narrowed {
	said, skipped, silent := map[string]Narrowed{}, sets.New[string](), sets.New[string]()
	for _, plugin := range c.PreFilters {
		result, status := plugin.PreFilter(ctx, c.state, c.pod, c.nodes)
		if status.IsSkip() {
			skipped.Insert(plugin.Name())
			continue
		}
		if !status.IsSuccess() {
			silent.Insert(plugin.Name())
		}
		if !status.IsSuccess() || !result.AllNodes() {
			said[plugin.Name()] = narrowed(result, status)
		}
	}
	c.state.SetSkipFilterPlugins(skipped)
	for _, plugin := range c.Filters {
		if !skipped.Has(plugin.Name()) && !silent.Has(plugin.Name()) {
			c.asked = append(c.asked, plugin)
		}
	}
	return said
}

func (c *cycle) filters(ctx context.Context) map[string]map[string]Status {
	said := map[string]map[string]Status{}
	for _, node := range c.nodes {
		if refusals := c.filter(ctx, c.state, node); len(refusals) > 0 {
			said[node.Node().Name] = refusals
		}
	}
	return said
}

func (c *cycle) filter(ctx context.Context, state fwk.CycleState, node fwk.NodeInfo) map[string]Status {
	said := map[string]Status{}
	for _, plugin := range c.asked {
		if status := plugin.Filter(ctx, state, c.pod, node); !status.IsSuccess() {
			said[plugin.Name()] = stated(status)
		}
	}
	return said
}

// verdicts runs the framework as a cycle does, on a state of its own, and tells which nodes are left.
func (c *cycle) verdicts(ctx context.Context, answer *Answer) (feasible []fwk.NodeInfo) {
	state := framework.NewCycleState()
	answer.Verdicts = map[string]Status{}
	result, status, plugins := c.RunPreFilterPlugins(ctx, state, c.pod)
	answer.PreFilter = Merged{Narrowed: narrowed(result, status), Plugins: sets.List(plugins)}
	if !status.IsSuccess() {
		return nil
	}
	for _, node := range c.nodes {
		name := node.Node().Name
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			continue
		}
		if status := c.RunFilterPlugins(ctx, state, c.pod, node); !status.IsSuccess() {
			answer.Verdicts[name] = stated(status)
		} else {
			feasible = append(feasible, node)
		}
	}
	return feasible
}

func (c *cycle) scores(ctx context.Context, nodes []fwk.NodeInfo) *Scores {
	if status := c.RunPreScorePlugins(ctx, c.state, c.pod, nodes); !status.IsSuccess() {
		return &Scores{Error: status.Message()}
	}
	said := &Scores{Skipped: sets.List(c.state.GetSkipScorePlugins())}
	scored, status := c.RunScorePlugins(ctx, c.state, c.pod, nodes)
	if !status.IsSuccess() {
		said.Error = status.Message()
		return said
	}
	said.Raw, said.Normalized, said.Totals = map[string]map[string]int64{}, map[string]map[string]int64{}, map[string]int64{}
	for _, node := range scored {
		said.Totals[node.Name] = node.TotalScore
		for _, score := range node.RawScores {
			put(said.Raw, score.Name, node.Name, score.Score)
		}
		for _, score := range node.Scores {
			put(said.Normalized, score.Name, node.Name, score.Score/c.Weights[score.Name])
		}
	}
	return said
}

func put(into map[string]map[string]int64, plugin, node string, score int64) {
	if into[plugin] == nil {
		into[plugin] = map[string]int64{}
	}
	into[plugin][node] = score
}
