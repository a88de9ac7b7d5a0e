package service

import (
	"context"

	extender "k8s.io/kube-scheduler/extender/v1"
)

// The paths of a scheduler's extender, without the leading slash.
const (
	FilterVerb     = "filter"
	PrioritizeVerb = "prioritize"
)

// serveExtender serves an extender that filters out no node and gives all nodes the same score, so that the scheduler's
// own plugins decide.
func serveExtender(s *server) (func(context.Context) error, error) {
	answerJSON(s, "/"+FilterVerb, FilterVerb, func(asked *extender.ExtenderArgs) any {
		return extender.ExtenderFilterResult{NodeNames: asked.NodeNames, Nodes: asked.Nodes}
	})
	answerJSON(s, "/"+PrioritizeVerb, PrioritizeVerb, func(*extender.ExtenderArgs) any { return extender.HostPriorityList{} })
	return nil, nil
}
