package topology

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Process is one process to start.
type Process struct {
	// Name is unique: "etcd-0". Kind is its program.
	Name, Kind string
	// Args are the flags.
	Args []string
	// Address is where it serves, as a URL.
	Address string
	Scrape  control.ScrapeTarget
}

// Plan is a whole plane.
type Plan struct {
	Etcd, APIServer, Scheduler, ControllerManager Process
	// SchedulerConfig is the content of Layout.SchedulerConfig.
	SchedulerConfig []byte
	// AuditPolicy is the content of Layout.AuditPolicy; nil: no auditing.
	AuditPolicy []byte
	// Deviations from upstream's defaults. Certificates, addresses of other
	// components and data directories are not among them: these every
	// installation sets.
	Deviations []control.Deviation
}

// Processes are all processes, in the order in which they start.
func (p Plan) Processes() []Process {
	return []Process{p.Etcd, p.APIServer, p.Scheduler, p.ControllerManager}
}

// Defaults are upstream's defaults of flags, by kind and name, as far as they
// are known. They are shown beside what a user has set.
type Defaults map[string]map[string]string

// Build makes the plan. The config must be valid (control.Config.Problems).
func Build(cfg control.Config, l Layout, p Ports, defaults Defaults) (Plan, error) {
	schedulerConfig, err := SchedulerConfig(cfg.Scheduler, l)
	if err != nil {
		return Plan{}, err
	}
	etcd := etcd(l, p)
	apiServer := apiServer(l, p)
	apiServer.audit(cfg, l)
	scheduler := scheduler(l, p)
	controllers := controllerManager(l, p, cfg.ControllerManager)
	for _, c := range []struct {
		*component
		flags control.Flags
	}{
		{etcd, cfg.Etcd.Flags}, {apiServer, cfg.APIServer.Flags},
		{scheduler, cfg.Scheduler.Flags}, {controllers, cfg.ControllerManager.Flags},
	} {
		c.user(c.flags, defaults[c.process.Kind])
	}
	scheduler.deviations = append(schedulerDeviations(schedulerDocument(cfg.Scheduler, l)), scheduler.deviations...)
	plan := Plan{
		Etcd: etcd.finish(), APIServer: apiServer.finish(),
		Scheduler: scheduler.finish(), ControllerManager: controllers.finish(),
		SchedulerConfig: schedulerConfig,
		AuditPolicy:     auditPolicy(cfg),
		Deviations:      slices.Concat(etcd.deviations, apiServer.deviations, scheduler.deviations, controllers.deviations),
	}
	return plan, nil
}

// component collects the flags of one process.
type component struct {
	process    Process
	flags      map[string]string
	deviations []control.Deviation
}

func newComponent(name, kind, address string) *component {
	return &component{process: Process{Name: name, Kind: kind, Address: address}, flags: map[string]string{}}
}

// plumb sets what every installation sets for itself.
func (c *component) plumb(name, value string) { c.flags[name] = value }

// deviate sets what differs from upstream, and says why. What turns out to be
// upstream's default is set and not listed.
func (c *component) deviate(name, value, upstream, reason string) {
	c.flags[name] = value
	if value == upstream {
		return
	}
	c.deviations = append(c.deviations, control.Deviation{
		Component: c.process.Kind, Setting: "--" + name, Value: value, Default: cmp.Or(upstream, unset), Reason: reason,
	})
}

const (
	unset  = "(unset)"
	byUser = "set by the user"
)

// user lays the user's flags over ours.
func (c *component) user(flags control.Flags, defaults map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		c.deviations = slices.DeleteFunc(c.deviations, func(d control.Deviation) bool { return d.Setting == "--"+name })
		c.deviate(name, flags[name], defaults[name], byUser)
	}
}

func (c *component) finish() Process {
	for _, name := range slices.Sorted(maps.Keys(c.flags)) {
		c.process.Args = append(c.process.Args, "--"+name+"="+c.flags[name])
	}
	return c.process
}

// scrape says where the metrics are and which identity reads them.
func (c *component) scrape(caFile string, id control.KeyPair) {
	c.process.Scrape = control.ScrapeTarget{
		Job: c.process.Kind, Instance: c.process.Name, URL: c.process.Address + "/metrics",
		CAFile: caFile, CertFile: id.CertFile, KeyFile: id.KeyFile,
	}
}
