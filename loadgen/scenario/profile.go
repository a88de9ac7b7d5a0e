package scenario

import (
	"strings"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

const defaultScheduler = "default-scheduler"

// schedulerName checks that the scheduler has the profile that a deploy's pods name. Without this profile, the pods
// would wait forever.
func (v *validator) schedulerName(path string, a *Action) {
	if a.SchedulerName == "" || a.Kind != "deploy" {
		return
	}
	known := map[string]bool{}
	profiles, _ := v.s.ControlPlane.Scheduler.Config["profiles"].([]any)
	var names []string
	for _, p := range profiles {
		profile, _ := p.(map[string]any)
		name, ok := profile["schedulerName"].(string)
		if !ok {
			name = defaultScheduler
		}
		names, known[name] = append(names, name), true
	}
	if len(names) == 0 {
		names, known[defaultScheduler] = []string{defaultScheduler}, true
	}
	if !known[a.SchedulerName] {
		hint := strictyaml.Hint(a.SchedulerName, names, "controlPlane.scheduler.config.profiles has "+strings.Join(names, ", "))
		v.fail(path+".schedulerName", hint, "the scheduler has no profile %q", a.SchedulerName)
	}
}
