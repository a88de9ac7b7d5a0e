package scenario

import (
	"fmt"
	"math"
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// Autoscale configures a HorizontalPodAutoscaler.
type Autoscale struct {
	// Min: minimum replicas, default the replicas of the deploy
	Min int `yaml:"min,omitempty" zero:"the deploy's replicas; leave it out to use the default"`
	Max int `yaml:"max,omitempty"` // maximum replicas
	// Utilization: CPU usage at which the autoscaler keeps the pods, in percent of their CPU request, default 80
	Utilization int `yaml:"utilization,omitempty" zero:"80"`
}

// autoscalerTolerance is the fraction by which CPU usage may differ from the target before an autoscaler acts
// (--horizontal-pod-autoscaler-tolerance).
const autoscalerTolerance = 0.1

// Needed returns the number of pods that meets the autoscaler's target, but at least Min and at most Max. demand is the
// total CPU usage of the pods, and request is the CPU request of each pod.
func (a Autoscale) Needed(demand, request string) int {
	n := math.Ceil(float64(builtin.Milli(demand)) * 100 / (float64(max(builtin.Milli(request), 1)) * float64(max(a.Utilization, 1))))
	return min(max(int(n), a.Min), a.Max)
}

// Enough returns the smallest number of pods at which the autoscaler stops adding pods. needed is the number of pods
// that meets the target exactly.
func (a Autoscale) Enough(needed int) int {
	return max(int(math.Ceil(float64(needed)/(1+autoscalerTolerance))), a.Min)
}

// Autoscales reports whether the deploy has an autoscaler.
func (a *Action) Autoscales() bool { return a.Autoscale.Max > 0 }

// anyAction reports whether `is` returns true for at least one action of the phases.
func (s *Scenario) anyAction(is func(*Action) bool) bool {
	return slices.ContainsFunc(s.Phases, func(p Phase) bool {
		return slices.ContainsFunc(p.Actions, func(a Action) bool { return is(&a) })
	})
}

// Each returns one action for each of the Count workloads. If Count is 0, it returns only the action itself.
func (a *Action) Each() []Action {
	if a.Count == 0 || a.Kind == "create" {
		return []Action{*a}
	}
	all := make([]Action, a.Count)
	for i := range all {
		all[i] = *a
		all[i].Count, all[i].Name = 0, fmt.Sprintf("%s-%d", a.Name, i)
	}
	return all
}

const maxDeployments = 1000 // maximum of an action's Count

// autoscale checks the count, the autoscaler and the demand of an action. deploy is the deploy action with the same
// name, or nil.
func (v *validator) autoscale(path string, a, deploy *Action) {
	if a.Count != 0 {
		v.between(path+".count", float64(a.Count), 1, maxDeployments)
	}
	if s := a.Autoscale; s != (Autoscale{}) && a.Kind == "deploy" && a.WorkloadKind() == Deployment {
		at := path + ".autoscale"
		v.between(at+".max", float64(s.Max), 1, maxPods)
		v.between(at+".min", float64(s.Min), 1, maxPods)
		v.between(at+".utilization", float64(s.Utilization), 1, 1000)
		switch {
		case s.Max == 0:
		case s.Max < s.Min:
			v.fail(at+".max", fmt.Sprintf("at least %d", s.Min), "%d is less than min", s.Max)
		case a.Replicas < s.Min || a.Replicas > s.Max:
			v.fail(path+".replicas", fmt.Sprintf("from %d to %d", s.Min, s.Max), "%d replicas are outside the bounds of the autoscaler", a.Replicas)
		case v.s.ControlPlane.MetricsServer.Replicas == 0:
			v.fail(at, "set controlPlane.metricsServer.replicas: 1", "an autoscaler requires metrics-server, which reports the CPU use of pods")
		}
	}
	if a.Kind == "demand" && builtin.Milli(a.CPU) <= 0 {
		v.fail(path+".cpu", `for example "40", in CPUs`, "the demand must be greater than 0 CPUs")
	}
	switch {
	case deploy == nil || a.Kind == "deploy":
	case a.Count != deploy.Count && deploy.Count == 0:
		v.fail(path+".count", "leave it out", "%q is only one %s", a.Name, deploy.WorkloadKind())
	case a.Count != deploy.Count:
		v.fail(path+".count", fmt.Sprintf("write count: %d", deploy.Count), "%q consists of %d %ss", a.Name, deploy.Count, deploy.WorkloadKind())
	case a.Kind == "scale" && deploy.Autoscales():
		v.fail(path+".kind", "write kind: demand", "the autoscaler of %q would undo this scale action", a.Name)
	}
}
