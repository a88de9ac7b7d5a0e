package controlplane

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

// minDescriptors is the smallest limit of open files per process at which a plane starts. It is the next power of two
// above 2,700: 500 connections of kubelets, 2,000 connections of watches, and 200 for etcd and the process itself.
// needOf doubles the limit for a plane with a load balancer, which uses two descriptors for each connection.
const minDescriptors = 4096

// minFreePerMember and minFreeBesides are parts of the disk space that a start needs, in bytes. minFreePerMember covers
// the two WAL segments of 64 MB that each etcd member preallocates. minFreeBesides covers the databases of etcd, the
// logs and a margin.
const (
	minFreePerMember = 128 << 20
	minFreeBesides   = 128 << 20
)

// resources are amounts of machine resources: either needed to start a plane, or free on the machine.
type resources struct {
	descriptors uint64 // limit of open files per process
	disk        uint64 // free bytes on the file system of the plane's directory
	memory      uint64 // bytes that new processes can use; zero if the system does not report it
}

// needOf returns the resources that a plane with config cfg needs. A resumed plane needs less disk space, because its
// WAL is already preallocated.
func needOf(cfg control.Config, resumed bool) resources {
	n := resources{descriptors: minDescriptors, disk: minFreeBesides, memory: memoryShared * uint64(max(1, len(releasesIn(cfg))))}
	if cfg.Count(control.KindAPIServer) > 1 {
		n.descriptors *= 2
	}
	n.descriptors = max(n.descriptors, uint64(cfg.APIServer.Descriptors))
	if !resumed {
		n.disk += uint64(cfg.Count(control.KindEtcd)) * minFreePerMember
	}
	for _, kind := range control.Kinds() {
		n.memory += uint64(cfg.Count(kind)) * memoryOf(kind)
	}
	return n
}

// memoryShared is the memory in bytes that all components of a release share: the pages of their common executable.
const memoryShared = 128 << 20

// memoryOf returns the private memory, in bytes, that one component of a kind uses when a plane has just become ready,
// plus a margin. `controlplane status` shows the actual values in the column PRIVATE.
func memoryOf(kind string) uint64 {
	alone := map[string]uint64{control.KindAPIServer: 256 << 20, control.KindControllerManager: 64 << 20}
	return cmp.Or(alone[kind], 48<<20)
}

func checkResources(dir string, cfg control.Config, resumed bool) error {
	limit, err := process.RaiseDescriptors()
	if err != nil {
		return err
	}
	free, err := process.FreeBytes(dir)
	if err != nil {
		return err
	}
	return needOf(cfg, resumed).check(dir, resources{descriptors: limit, disk: free, memory: process.AvailableMemory()})
}

// check compares the need n with the resources m of the machine. It returns an error for the first resource that does
// not suffice; the error states the missing amount.
func (n resources) check(dir string, m resources) error {
	if m.descriptors < n.descriptors {
		return fmt.Errorf("too few file descriptors: the hard limit of open files is %d, %d less than the %d that this control plane needs (raise it: ulimit -Hn %d, as root or in limits.conf)",
			m.descriptors, n.descriptors-m.descriptors, n.descriptors, n.descriptors)
	}
	if m.disk < n.disk {
		return fmt.Errorf("%s: the disk is too full: %d MB are free, %d MB less than the %d MB that this control plane needs (free some, or choose another --dir)",
			dir, m.disk>>20, megabytes(n.disk-m.disk), n.disk>>20)
	}
	if m.memory > 0 && m.memory < n.memory {
		return fmt.Errorf("too little memory: %d MB are available, %d MB less than the %d MB that this control plane needs to start (end other programs, or use fewer replicas)",
			m.memory>>20, megabytes(n.memory-m.memory), n.memory>>20)
	}
	return nil
}

func megabytes(bytes uint64) uint64 { return (bytes + 1<<20 - 1) >> 20 }

// Defaults holds the components' default values of the flags that a config sets, by kind of component and flag.
type Defaults = topology.Defaults

// Check validates the settings in cfg before any component is started: for each release, it runs that release's program
// to check the settings of the components. It returns the upstream defaults of the flags that cfg sets, and the
// problems found.
func Check(ctx context.Context, executable string, cfg control.Config) (Defaults, []control.Problem, error) {
	defaults := Defaults{}
	var problems []control.Problem
	releases := releasesIn(cfg)
	if own := control.Linked(); !slices.Contains(releases, own) { // for components that do not come with a release
		releases = append(releases, own)
	}
	for _, r := range releases {
		program, err := findProgram(ctx, executable, r)
		if err != nil {
			return nil, []control.Problem{{Path: "version", Msg: err.Error(), Hint: control.BuildHint(r)}}, nil
		}
		found, err := checkRelease(ctx, program.Path, cfg, r, defaults)
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, found...)
	}
	return defaults, problems, nil
}

// checkRelease runs program to check the settings of the components of release r. It adds the upstream defaults that it
// finds to `defaults`. If the components of a kind have several releases, only the first component's release counts, as
// in Plan.Deviations.
func checkRelease(ctx context.Context, program string, cfg control.Config, r control.Release, defaults Defaults) (problems []control.Problem, err error) {
	for _, section := range cfg.FlagSections() {
		of := []control.Release{control.Linked()}
		if slices.Contains(control.VersionedKinds(), section.Kind) && cfg.Count(section.Kind) > 0 {
			of = cfg.ReleasesOf(section.Kind)
		}
		if !slices.Contains(of, r) {
			continue
		}
		section.Flags = cfg.FlagsOf(section.Kind, r)
		ask := control.Check{Flags: section.Flags}
		if section.Kind == control.KindScheduler && len(cfg.Scheduler.Config) > 0 {
			generated, err := topology.SchedulerConfig(cfg.Scheduler, topology.Layout{}, nil)
			if err != nil {
				return nil, err
			}
			ask.SchedulerConfig = string(generated)
		}
		if len(ask.Flags) == 0 && ask.SchedulerConfig == "" {
			continue
		}
		checked, err := check(ctx, program, section.Kind, ask)
		if err != nil {
			return nil, err
		}
		if len(of) == 1 || r == cfg.ReleaseOf(control.ComponentName(section.Kind, 0)) {
			defaults[section.Kind] = checked.Defaults
		}
		problems = append(problems, problemsOf(section, checked)...)
	}
	return problems, nil
}

func problemsOf(section control.FlagSection, checked control.Checked) []control.Problem {
	var problems []control.Problem
	slices.Sort(checked.Unknown)
	for _, name := range checked.Unknown {
		hint := strictyaml.Hint(name, checked.Known, "to list its flags, run: "+section.Kind+" --help")
		problems = append(problems, control.Problem{Path: section.Path + "." + name, Msg: section.Kind + " has no such flag", Hint: hint})
	}
	for _, name := range slices.Sorted(maps.Keys(checked.Wrong)) {
		problems = append(problems, control.Problem{
			Path: section.Path + "." + name, Msg: checked.Wrong[name], Hint: fmt.Sprintf("upstream's default is %q", checked.Defaults[name]),
		})
	}
	if checked.ConfigError != "" {
		problems = append(problems, control.Problem{
			Path: "scheduler.config", Msg: strings.Join(strings.Fields(checked.ConfigError), " "), Hint: "config is a KubeSchedulerConfiguration, kubescheduler.config.k8s.io/v1",
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
