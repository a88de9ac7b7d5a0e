package scenario

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
)

// schedulerValues checks the numbers and names of a KubeSchedulerConfiguration as
// ValidateKubeSchedulerConfiguration does, as far as they need no plugin.
func (v *validator) schedulerValues(path string, c *schedulerv1.KubeSchedulerConfiguration) {
	if c.Parallelism != nil && *c.Parallelism <= 0 {
		v.fail(path+".parallelism", "at least 1; left out it is 16", "%d is out of bounds", *c.Parallelism)
	}
	v.percentage(path+".percentageOfNodesToScore", c.PercentageOfNodesToScore)
	if c.ClientConnection.Burst < 0 {
		v.fail(path+".clientConnection.burst", "more than 0; left out it is 100", "%d is out of bounds", c.ClientConnection.Burst)
	}
	initial, longest := int64(1), int64(10)
	if c.PodInitialBackoffSeconds != nil {
		initial = *c.PodInitialBackoffSeconds
	}
	if c.PodMaxBackoffSeconds != nil {
		longest = *c.PodMaxBackoffSeconds
	}
	switch {
	case initial <= 0:
		v.fail(path+".podInitialBackoffSeconds", "at least 1", "%d is out of bounds", initial)
	case longest < initial && c.PodMaxBackoffSeconds == nil:
		v.fail(path+".podInitialBackoffSeconds", "write podMaxBackoffSeconds too", "%d is more than podMaxBackoffSeconds, %d where it is left out", initial, longest)
	case longest < initial:
		v.fail(path+".podMaxBackoffSeconds", fmt.Sprintf("at least podInitialBackoffSeconds, %d", initial), "%d is out of bounds", longest)
	}
	v.profiles(path, c.Profiles)
}

func (v *validator) percentage(path string, p *int32) {
	if p != nil && (*p < 0 || *p > 100) {
		v.fail(path, "from 0 to 100", "%d is out of bounds", *p)
	}
}

// profiles checks the names of profiles, and that one of them takes the pods that are awaited.
func (v *validator) profiles(path string, all []schedulerv1.KubeSchedulerProfile) {
	seen := map[string]bool{}
	named := true
	for i, p := range all {
		at := fmt.Sprintf("%s.profiles[%d]", path, i)
		v.percentage(at+".percentageOfNodesToScore", p.PercentageOfNodesToScore)
		name := corev1.DefaultSchedulerName
		switch {
		case p.SchedulerName != nil && *p.SchedulerName != "":
			name = *p.SchedulerName
		case len(all) > 1 || p.SchedulerName != nil:
			v.fail(at+".schedulerName", "write a name for each profile", "is missing")
			named = false
			continue
		}
		if seen[name] {
			v.fail(at+".schedulerName", "profiles are told apart by it", "a second profile of %q", name)
		}
		seen[name] = true
		configured := map[string]bool{}
		for j, c := range p.PluginConfig {
			if configured[c.Name] {
				v.fail(fmt.Sprintf("%s.pluginConfig[%d].name", at, j), "keep one", "the arguments of %q are there twice", c.Name)
			}
			configured[c.Name] = true
		}
	}
	for i, p := range all {
		if p.Plugins != nil {
			at := fmt.Sprintf("%s.profiles[%d].plugins", path, i)
			v.needsPlugin(at+".bind", p.Plugins.Bind, "DefaultBinder", p.Plugins.MultiPoint)
			v.needsPlugin(at+".queueSort", p.Plugins.QueueSort, "PrioritySort", p.Plugins.MultiPoint)
		}
	}
	awaits := slices.ContainsFunc(v.s.Phases, func(p Phase) bool { return p.Until == "podsReady" })
	if len(all) > 0 && named && awaits && !seen[corev1.DefaultSchedulerName] {
		v.fail(path+".profiles", fmt.Sprintf("add one with schedulerName: %s, which the pods of a deploy have", corev1.DefaultSchedulerName), "podsReady never holds: no profile takes the pods")
	}
}

// needsPlugin refuses a point of extension without the plugin that a scheduler must
// have there: none but the default one is built in.
func (v *validator) needsPlugin(path string, point schedulerv1.PluginSet, plugin string, everywhere schedulerv1.PluginSet) {
	is := func(name string) func(schedulerv1.Plugin) bool {
		return func(p schedulerv1.Plugin) bool { return p.Name == name }
	}
	off := func(s schedulerv1.PluginSet) bool {
		return slices.ContainsFunc(s.Disabled, is("*")) || slices.ContainsFunc(s.Disabled, is(plugin))
	}
	on := slices.ContainsFunc(point.Enabled, is(plugin))
	if !on && (off(point) || off(everywhere) && !slices.ContainsFunc(everywhere.Enabled, is(plugin))) {
		v.fail(path, fmt.Sprintf("add enabled: [{name: %s}]", plugin), "a scheduler does not start without %s", plugin)
	}
}
