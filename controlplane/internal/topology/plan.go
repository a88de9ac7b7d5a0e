package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Process is the description of a process to start.
type Process struct {
	// Name is the unique name of the process, such as "etcd-0". Kind is the name of its program.
	Name, Kind string
	// Release is the release of the program. It is only set for kinds that come with a release.
	Release control.Release
	// Args are the command-line flags. Env is added to the environment that the process inherits.
	Args, Env []string
	// Descriptors is the process's limit of open files. Zero means the supervisor's limit.
	Descriptors uint64
	// Address is the URL at which the process serves. Peer is the URL at which an etcd member serves its peers.
	Address, Peer string
	Scrape        control.ScrapeTarget
}

// Backend is one API server behind the load balancer.
type Backend struct{ Name, URL string }

// Plan describes all processes and connections of a plane.
type Plan struct {
	// Processes lists the processes, grouped by kind, in the order in which they start.
	Processes []Process
	// Server is the URL of the API server, or of the load balancer in front of several API servers.
	Server string
	// Backends lists the API servers behind the load balancer. It is empty if there is no load balancer.
	Backends []Backend
	// Proxies lists the proxies whose links can be delayed and cut.
	Proxies []Proxy
	// MetricsServerPort is the port at which API servers reach metrics-server. Zero means that there is no
	// metrics-server.
	MetricsServerPort int
	// SchedulerConfig is the content of the scheduler's configuration file, Layout.SchedulerConfig.
	SchedulerConfig []byte
	// AuditPolicy is the content of the file Layout.AuditPolicy, or nil if auditing is off.
	AuditPolicy []byte
	// Tracing is the content of the file Layout.Tracing, or nil if tracing is off.
	Tracing []byte
	// Authorization is the content of the file Layout.Authorization, or nil if flags configure authorization.
	Authorization []byte
	// Deviations lists the settings that differ from upstream's defaults. It leaves out settings that every
	// installation must make: certificates, addresses of other components and data directories.
	Deviations []control.Deviation
}

// Of returns the processes of the given kind.
func (p Plan) Of(kind string) []Process {
	return slices.DeleteFunc(slices.Clone(p.Processes), func(proc Process) bool { return proc.Kind != kind })
}

// Listeners returns the names of the listeners of the plan's processes.
func (p Plan) Listeners() []string {
	var names []string
	for _, proc := range p.Processes {
		names = append(names, proc.Name)
		if proc.Kind == control.KindEtcd {
			names = append(names, PeerListener(proc.Name))
		}
	}
	return names
}

// Defaults maps kinds of component and flags to upstream's default values. An unknown default has no entry.
type Defaults map[string]map[string]string

// Build returns the plan of a plane with config cfg.
func Build(cfg control.Config, l Layout, p Ports, defaults Defaults) (Plan, error) {
	schedulerConfig, err := SchedulerConfig(cfg.Scheduler, l, p)
	if err != nil {
		return Plan{}, err
	}
	m := maker{cfg, l, p}
	plan := Plan{
		Server: URL(p[control.ComponentName(control.KindAPIServer, 0)]), Proxies: proxies(cfg, p),
		SchedulerConfig: schedulerConfig, AuditPolicy: auditPolicy(cfg), Tracing: tracingConfig(cfg), Authorization: authorizationConfig(cfg, l),
	}
	if apiServers := cfg.ComponentsOf(control.KindAPIServer); len(apiServers) > 1 {
		plan.Server = URL(p[Balancer])
		for _, name := range apiServers {
			plan.Backends = append(plan.Backends, Backend{name, URL(p[name])})
		}
	}
	for _, name := range cfg.ComponentsOf(control.KindMetricsServer) {
		plan.MetricsServerPort = p[name]
	}
	if cfg.HasLinks() {
		for _, l := range aggregatorLinks(cfg) {
			plan.MetricsServerPort = p[LinkListener(l.From, l.To)]
		}
	}
	for _, kind := range control.Kinds() {
		for i, name := range cfg.ComponentsOf(kind) {
			c := m.makers()[kind](name)
			if cfg.Emulates(kind) {
				c.setDeviation(control.EmulatedFlag, cfg.EmulatedVersion, "", byUser)
			}
			c.process.Release = cfg.ReleaseOf(name)
			c.user(cfg.FlagsOf(kind, c.process.Release), defaults[kind])
			plan.Processes = append(plan.Processes, c.finish())
			if i == 0 { // the other replicas differ only in their names and ports
				plan.Deviations = append(plan.Deviations, c.deviations...)
			}
		}
	}
	plan.Deviations = append(plan.Deviations, topologyDeviations(cfg)...)
	return plan, nil
}

func (m maker) makers() map[string]func(name string) *component {
	return map[string]func(string) *component{
		control.KindEtcd: m.etcd, control.KindAPIServer: m.apiServer,
		control.KindScheduler: m.scheduler, control.KindControllerManager: m.controllerManager,
		control.KindMetricsServer: m.metricsServer,
		control.KindKMSPlugin:     m.kmsPlugin, control.KindOIDCIssuer: m.oidcIssuer, control.KindTokenWebhook: m.tokenWebhook,
		control.KindAuthorizationWebhook: m.service, control.KindAuditWebhook: m.service, control.KindSchedulerExtender: m.service,
		control.KindConversionWebhook: m.service,
		control.KindCloudAPI:          m.cloudAPI, control.KindCloudControllerManager: m.cloudControllerManager,
	}
}

// topologyDeviations returns the deviations from upstream that are not flags.
func topologyDeviations(cfg control.Config) []control.Deviation {
	var all []control.Deviation
	for _, kind := range control.VersionedKinds() {
		for _, name := range cfg.ComponentsOf(kind) {
			if r := cfg.ReleaseOf(name); r != control.Newest() {
				all = append(all, control.Deviation{
					Component: name, Setting: "version", Value: r.VersionOf(kind), Default: control.Newest().VersionOf(kind), Reason: byUser,
				})
			}
		}
	}
	if n := cfg.APIServer.Descriptors; n > 0 {
		all = append(all, control.Deviation{
			Component: control.KindAPIServer, Setting: "RLIMIT_NOFILE", Value: fmt.Sprint(n), Default: "this machine's", Reason: byUser,
		})
	}
	if n := cfg.APIServer.CPUs; n > 0 {
		all = append(all, control.Deviation{
			Component: control.KindAPIServer, Setting: "GOMAXPROCS", Value: fmt.Sprint(n), Default: "this machine's processors", Reason: byUser,
		})
	}
	if cfg.HasLinks() {
		all = append(all, control.Deviation{
			Component: control.KindEtcd, Setting: "networkFaults", Value: control.NetworkFaultsOn, Default: unset,
			Reason: "peers and API servers reach members through proxies, so that each link can be delayed and cut; the proxies add about 100 microseconds to each request",
		})
	}
	return all
}

type component struct {
	process    Process
	flags      map[string]string
	deviations []control.Deviation
}

func newComponent(name, kind, address string) *component {
	return &component{process: Process{Name: name, Kind: kind, Address: address}, flags: map[string]string{}}
}

// set sets a flag that every installation must set. It does not count as a deviation.
func (c *component) set(name, value string) { c.flags[name] = value }

// setDeviation sets a flag to a value that differs from upstream's, and records the reason.
func (c *component) setDeviation(name, value, upstream, reason string) {
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

func (c *component) user(flags control.Flags, defaults map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		c.deviations = slices.DeleteFunc(c.deviations, func(d control.Deviation) bool { return d.Setting == "--"+name })
		c.setDeviation(name, flags[name], defaults[name], byUser)
	}
}

// Overlay returns a copy of args in which flags are added or replaced. The copy is for a single start of a process.
func Overlay(args []string, flags control.Flags) []string {
	if len(flags) == 0 {
		return args
	}
	over := slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		_, replaced := flags[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		over = append(over, "--"+name+"="+flags[name])
	}
	return over
}

func (c *component) finish() Process {
	for _, name := range slices.Sorted(maps.Keys(c.flags)) {
		c.process.Args = append(c.process.Args, "--"+name+"="+c.flags[name])
	}
	return c.process
}

func (c *component) scrape(caFile string, id control.KeyPair) {
	c.process.Scrape = control.ScrapeTarget{
		Job: c.process.Kind, Instance: c.process.Name, URL: c.process.Address + "/metrics",
		CAFile: caFile, CertFile: id.CertFile, KeyFile: id.KeyFile,
	}
}
