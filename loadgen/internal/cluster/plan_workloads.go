package cluster

import (
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// planned is the state of a workload while countWorkloads follows it through the phases.
type planned struct {
	deploy scenario.Action
	there  bool
	pods   int // current number of pods
	most   int // maximum number of pods at a time, including those that an autoscaler may add
}

// countWorkloads follows the workloads through the phases. It counts the objects that deploy actions create, the
// objects that controllers create for them, and the maximum number of pods at a time.
func (p *Plan) countWorkloads(s *plan.Plan) {
	p.Workloads, p.Companions, p.ByControllers = map[string]int{}, map[string]int{}, map[string]int{}
	if replacesPods(s) {
		p.Replaced = plan.AtLeast
	}
	all := map[string]*planned{}
	for i, phase := range s.Phases {
		surge := 0
		for _, a := range eachOf(phase.Actions) {
			if a.OnObjects() || a.Kind == "create" || a.Kind == "custom" {
				continue
			}
			w := all[a.Name]
			if w == nil {
				w = &planned{}
				all[a.Name] = w
			}
			switch a.Kind {
			case "deploy":
				p.countDeploy(s, w, a, s.Phases[i:])
			case "scale":
				p.grow(w, a.Replicas)
				w.pods, w.most = a.Replicas, a.Replicas
			case "demand":
				p.Replaced = p.Replaced.Or(plan.About)
				p.grow(w, w.deploy.Autoscale.Needed(a.CPU, w.deploy.CPU))
			case "rollingUpdate":
				surge += plan.Scaled(a.MaxSurge, w.most, true)
				p.makePods(w, w.pods)
				if w.deploy.WorkloadKind() == scenario.Deployment {
					p.ByControllers["ReplicaSet"]++
				}
			case "delete":
				w.there, w.pods, w.most = false, 0, 0
			}
		}
		sum := 0
		for _, w := range all {
			sum += w.most
		}
		p.Pods = max(p.Pods, sum+surge)
	}
}

// countDeploy counts the objects of a deploy action. phases are the phase of the action and all phases after it.
func (p *Plan) countDeploy(s *plan.Plan, w *planned, a scenario.Action, phases []scenario.Phase) {
	kind, replicas := a.WorkloadKind(), a.Replicas
	if !w.there {
		p.Workloads[kind]++
		for _, kind := range companionsOf(a) {
			p.Companions[kind]++
		}
		if kind == scenario.Deployment {
			p.ByControllers["ReplicaSet"]++
		}
	}
	w.deploy, w.there = a, true
	switch kind {
	case scenario.DaemonSet:
		replicas = s.Nodes.Count
	case scenario.CronJob:
		p.Replaced = p.Replaced.Or(plan.Ending(phases...))
		runs := int(plan.LongestOf(phases...) / max(a.Every.D(), 1))
		p.ByControllers["Job"] += runs
		p.makePods(w, runs*replicas)
		w.most = replicas
		return
	}
	p.grow(w, replicas)
	w.most = max(replicas, a.Autoscale.Max)
}

// companionsOf returns the kinds of the objects that a deploy action creates in addition to its workload.
func companionsOf(a scenario.Action) (kinds []string) {
	for _, x := range []struct {
		kind  string
		makes bool
	}{
		{"Service", a.Service || a.WorkloadKind() == scenario.StatefulSet}, {"PodGroup", a.Gang > 0}, {"ResourceClaimTemplate", a.Devices > 0},
		{"HorizontalPodAutoscaler", a.Autoscales()},
	} {
		if x.makes {
			kinds = append(kinds, x.kind)
		}
	}
	return kinds
}

// grow counts the pods that controllers create when a workload grows to the given number of pods.
func (p *Plan) grow(w *planned, pods int) {
	p.makePods(w, max(pods-w.pods, 0))
	w.pods = max(w.pods, pods)
}

func (p *Plan) makePods(w *planned, n int) {
	p.ByControllers["Pod"] += n
	if w.deploy.Devices > 0 {
		p.ByControllers["ResourceClaim"] += n
	}
}

// replacesPods reports whether controllers may have to replace pods: pods of failed nodes, evicted or preempted pods, or
// pods that fail.
func replacesPods(s *plan.Plan) bool {
	for _, f := range s.Faults {
		if f.OfNodes() || f.Traits().OfCloud {
			return true
		}
	}
	for _, p := range s.Phases {
		for _, a := range p.Actions {
			r := a.Target.Resource
			if a.PriorityClass != "" || r == "pods" || strings.HasSuffix(r, ".apps") || strings.HasSuffix(r, ".batch") {
				return true
			}
		}
	}
	return len(s.Nodes.PodLives) > 0
}

func eachOf(actions []scenario.Action) (all []scenario.Action) {
	for i := range actions {
		all = append(all, actions[i].Each()...)
	}
	return all
}
