package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	kjson "sigs.k8s.io/json"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

var (
	unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\S+) into Go struct field \S+?\.(\S+) of type (\S+)`)
)

// schedulerConfig checks the types in the KubeSchedulerConfiguration, and the names of plugins. The scheduler itself
// checks everything else before it starts.
func (v *validator) schedulerConfig() {
	const path = "controlPlane.scheduler.config"
	given := v.s.ControlPlane.Scheduler.Config
	if len(given) == 0 {
		return
	}
	for _, own := range [][2]string{{"apiVersion", schedulerv1.SchemeGroupVersion.String()}, {"kind", "KubeSchedulerConfiguration"}} {
		if have, ok := given[own[0]]; ok && have != own[1] {
			v.fail(path+"."+own[0], "write "+own[1]+", or leave out this field", "unknown value %q", fmt.Sprint(have))
		}
	}
	text, err := json.Marshal(given)
	if err != nil {
		v.fail(path, "quote field names such as 1 or true, because they must be strings", "the configuration cannot be read: %v", err)
		return
	}
	var config schedulerv1.KubeSchedulerConfiguration
	strict, err := kjson.UnmarshalStrict(text, &config)
	if err != nil {
		v.schedulerType(path, err)
		return
	}
	for _, err := range strict {
		if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
			last := m[1][strings.LastIndexByte(m[1], '.')+1:]
			v.fail(path+"."+m[1], schedulerHint(m[1], last), "unknown field %q", last)
		} else {
			v.fail(path, "see the Kubernetes documentation of KubeSchedulerConfiguration", "%v", err)
		}
	}
	v.schedulerValues(path, &config)
	for i, p := range config.Profiles {
		if p.Plugins == nil {
			continue
		}
		// Each field of p.Plugins is an extension point with a PluginSet.
		var points map[string]schedulerv1.PluginSet
		data, _ := json.Marshal(p.Plugins)
		_ = json.Unmarshal(data, &points)
		for _, point := range slices.Sorted(maps.Keys(points)) {
			set := points[point]
			v.plugins(fmt.Sprintf("%s.profiles[%d].plugins.%s.enabled", path, i, point), set.Enabled)
			v.plugins(fmt.Sprintf("%s.profiles[%d].plugins.%s.disabled", path, i, point), set.Disabled)
		}
	}
	for i, p := range config.Profiles {
		for j, c := range p.PluginConfig {
			v.plugins(fmt.Sprintf("%s.profiles[%d].pluginConfig[%d]", path, i, j), []schedulerv1.Plugin{{Name: c.Name}})
		}
	}
}

func (v *validator) schedulerType(path string, err error) {
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		names := map[string]string{"int32": "a whole number", "int64": "a whole number", "bool": "true or false", "string": "text", "float32": "a number", "float64": "a number"}
		want := cmp.Or(names[m[3]], "the type that Kubernetes documents")
		given := map[string]string{"object": "fields", "array": "a list", "string": "text", "number": "a number", "bool": "true or false"}[m[1]]
		v.fail(path+"."+m[2], "must be "+want, "cannot be %s", given)
		return
	}
	v.fail(path, "see the Kubernetes documentation of KubeSchedulerConfiguration", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// schedulerHint returns a hint with the known field that is nearest to an unknown field.
func schedulerHint(path, last string) string {
	known := []string{
		"parallelism", "leaderElection", "clientConnection", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds",
		"profiles", "extenders", "delayCacheUntilActive", "enableProfiling", "enableContentionProfiling",
	}
	if strings.Contains(path, ".") {
		known = []string{
			"schedulerName", "plugins", "pluginConfig", "percentageOfNodesToScore", "qps", "burst", "contentType", "acceptContentTypes",
			"preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind",
			"postBind", "multiPoint", "enabled", "disabled", "name", "weight", "args",
		}
	}
	if near := strictyaml.Suggest(last, known); near != "" && near != last {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "the fields are documented as KubeSchedulerConfiguration, " + schedulerv1.SchemeGroupVersion.String()
}

func (v *validator) plugins(path string, all []schedulerv1.Plugin) {
	known := control.SchedulerPlugins()
	for i, p := range all {
		if strings.HasSuffix(path, ".enabled") && slices.ContainsFunc(all[:i], func(o schedulerv1.Plugin) bool { return o.Name == p.Name }) {
			v.fail(fmt.Sprintf("%s[%d].name", path, i), "remove one", "plugin %q is enabled twice", p.Name)
			continue
		}
		if p.Name == "*" || slices.Contains(known, p.Name) {
			continue
		}
		at := path
		if !strings.HasSuffix(path, "]") {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		v.fail(at+".name", strictyaml.Hint(p.Name, known, "known plugins: "+strings.Join(known, ", ")), "the scheduler has no plugin %q", p.Name)
	}
}

// schedulerValues checks the numbers and names of a KubeSchedulerConfiguration as
// ValidateKubeSchedulerConfiguration does, except for checks that need a plugin.
func (v *validator) schedulerValues(path string, c *schedulerv1.KubeSchedulerConfiguration) {
	if c.Parallelism != nil && *c.Parallelism <= 0 {
		v.fail(path+".parallelism", "at least 1; the default is 16", "%d is out of bounds", *c.Parallelism)
	}
	v.percentage(path+".percentageOfNodesToScore", c.PercentageOfNodesToScore)
	if c.ClientConnection.Burst < 0 {
		v.fail(path+".clientConnection.burst", "greater than 0; the default is 100", "%d is out of bounds", c.ClientConnection.Burst)
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
		v.fail(path+".podInitialBackoffSeconds", "also increase podMaxBackoffSeconds", "%d is greater than podMaxBackoffSeconds, which is %d by default", initial, longest)
	case longest < initial:
		v.fail(path+".podMaxBackoffSeconds", fmt.Sprintf("at least %d, the value of podInitialBackoffSeconds", initial), "%d is out of bounds", longest)
	}
	v.profiles(path, c.Profiles)
}

func (v *validator) percentage(path string, p *int32) {
	if p != nil && (*p < 0 || *p > 100) {
		v.fail(path, "from 0 to 100", "%d is out of bounds", *p)
	}
}

// profiles checks the names and plugins of profiles. It also checks that one of the profiles schedules the pods for
// which a phase waits.
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
			v.fail(at+".schedulerName", "give each profile a unique schedulerName", "two profiles have the name %q", name)
		}
		seen[name] = true
		configured := map[string]bool{}
		for j, c := range p.PluginConfig {
			if configured[c.Name] {
				v.fail(fmt.Sprintf("%s.pluginConfig[%d].name", at, j), "remove one", "the arguments of plugin %q appear twice", c.Name)
			}
			configured[c.Name] = true
		}
	}
	for i, p := range all {
		if p.Plugins != nil {
			at := fmt.Sprintf("%s.profiles[%d].plugins", path, i)
			v.needsPlugin(at+".bind", p.Plugins.Bind, "DefaultBinder", p.Plugins.MultiPoint)
			v.needsPlugin(at+".queueSort", p.Plugins.QueueSort, "PrioritySort", p.Plugins.MultiPoint)
			v.allocates(at+".multiPoint", p.Plugins.MultiPoint)
		}
	}
	awaits := slices.ContainsFunc(v.s.Phases, func(p Phase) bool { return p.Until.Is("podsReady") })
	if len(all) > 0 && named && awaits && !seen[corev1.DefaultSchedulerName] {
		v.fail(path+".profiles", fmt.Sprintf("add a profile with schedulerName: %s, the name that the pods of a deploy have", corev1.DefaultSchedulerName), "podsReady is never met: no scheduler profile accepts the pods")
	}
}

// needsPlugin reports an error if the extension point at path does not enable plugin. Without the plugin the scheduler
// does not start, and no other plugin of Kubernetes could replace it.
func (v *validator) needsPlugin(path string, point schedulerv1.PluginSet, plugin string, everywhere schedulerv1.PluginSet) {
	is := func(name string) func(schedulerv1.Plugin) bool {
		return func(p schedulerv1.Plugin) bool { return p.Name == name }
	}
	off := func(s schedulerv1.PluginSet) bool {
		return slices.ContainsFunc(s.Disabled, is("*")) || slices.ContainsFunc(s.Disabled, is(plugin))
	}
	on := slices.ContainsFunc(point.Enabled, is(plugin))
	if !on && (off(point) || off(everywhere) && !slices.ContainsFunc(everywhere.Enabled, is(plugin))) {
		v.fail(path, fmt.Sprintf("add enabled: [{name: %s}]", plugin), "the scheduler does not start without %s", plugin)
	}
}
