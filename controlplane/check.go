package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

// Defaults are the components' own values of flags that a config sets, by component and flag.
type Defaults = topology.Defaults

// Check has each component check the settings that the config has for it, before anything is
// started, and returns upstream's defaults of the flags.
func Check(ctx context.Context, executable string, cfg control.Config) (Defaults, []control.Problem, error) {
	defaults := Defaults{}
	var problems []control.Problem
	for _, section := range cfg.FlagSections() {
		ask := control.Check{Flags: section.Flags}
		if section.Kind == control.KindScheduler && len(cfg.Scheduler.Config) > 0 {
			generated, err := topology.SchedulerConfig(cfg.Scheduler, topology.Layout{})
			if err != nil {
				return nil, nil, err
			}
			ask.SchedulerConfig = string(generated)
		}
		if len(ask.Flags) == 0 && ask.SchedulerConfig == "" {
			continue
		}
		checked, err := check(ctx, executable, section.Kind, ask)
		if err != nil {
			return nil, nil, err
		}
		defaults[section.Kind] = checked.Defaults
		problems = append(problems, problemsOf(section, checked)...)
	}
	return defaults, problems, nil
}

func problemsOf(section control.FlagSection, checked control.Checked) []control.Problem {
	var problems []control.Problem
	slices.Sort(checked.Unknown)
	for _, name := range checked.Unknown {
		hint := strictyaml.Hint(name, checked.Known, "its flags are listed by: "+section.Kind+" --help")
		problems = append(problems, control.Problem{Path: section.Path + "." + name, Msg: section.Kind + " has no such flag", Hint: hint})
	}
	for _, name := range slices.Sorted(maps.Keys(checked.Wrong)) {
		problems = append(problems, control.Problem{
			Path: section.Path + "." + name, Msg: checked.Wrong[name], Hint: fmt.Sprintf("upstream's default is %q", checked.Defaults[name]),
		})
	}
	if checked.ConfigError != "" {
		problems = append(problems, control.Problem{
			Path: "scheduler.config", Msg: strings.Join(strings.Fields(checked.ConfigError), " "), Hint: "it is a KubeSchedulerConfiguration, kubescheduler.config.k8s.io/v1",
		})
	}
	return problems
}

func check(ctx context.Context, executable, kind string, ask control.Check) (checked control.Checked, err error) {
	input, err := json.Marshal(ask)
	if err != nil {
		return checked, err
	}
	cmd := exec.CommandContext(ctx, executable, "check", kind)
	cmd.Stdin = bytes.NewReader(input)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	output, err := cmd.Output()
	if err != nil {
		return checked, fmt.Errorf("check the settings of %s: %w: %s", kind, err, strings.TrimSpace(complaints.String()))
	}
	if err := json.Unmarshal(output, &checked); err != nil {
		return checked, fmt.Errorf("check the settings of %s: %w", kind, err)
	}
	return checked, nil
}
