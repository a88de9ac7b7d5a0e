package control

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// Problem is one mistake in a Config or a Fault.
type Problem struct {
	// Path is the path of the field, such as "apiServer.flags.secure-port".
	Path string
	// Msg says what is wrong, and Hint what to do instead.
	Msg, Hint string
}

// maxRate is the maximum rate of a client, in requests per second. A larger value probably means "unlimited".
const maxRate = 1_000_000

// noLimit is the rate limit that client-go treats as unlimited.
const noLimit = -1

// Problems returns the problems that can be found without running the components: values out of bounds, flags that
// Stormglass sets itself, and other flags with an unknown name or an invalid value.
func (c Config) Problems() []Problem {
	all := c.topologyProblems()
	if len(all) == 0 { // releaseProblems needs valid numbers of components
		all = c.releaseProblems()
	}
	number := func(path string, v, high float64, hint string) {
		if v < 0 || v > high {
			all = append(all, Problem{path, fmt.Sprintf("%v is out of bounds", v), fmt.Sprintf(hint, high)})
		}
	}
	limit := func(path string, qps float64, burst int) {
		if qps != noLimit {
			number(path+".qps", qps, maxRate, "greater than 0 and at most %.0f, or -1 for no limit")
		}
		number(path+".burst", float64(burst), maxRate, "from 1 to %.0f")
	}
	limit("controllerManager", c.ControllerManager.QPS, c.ControllerManager.Burst)
	limit("scheduler", c.Scheduler.QPS, c.Scheduler.Burst)
	limit("cloudControllerManager", c.CloudControllerManager.QPS, c.CloudControllerManager.Burst)
	number("scheduler.percentageOfNodesToScore", float64(c.Scheduler.PercentageOfNodesToScore), 100, "from 0 (upstream's default) to %.0f")

	all = append(all, c.gateProblems()...)
	all = append(all, c.coordinatedProblems()...)
	for _, section := range c.FlagSections() {
		for _, name := range slices.Sorted(maps.Keys(section.Flags)) {
			if hint, ok := section.refused(name, section.Flags[name]); ok {
				all = append(all, Problem{section.Path + "." + name, "Stormglass sets this flag itself", hint})
			} else if p, wrong := c.flagProblem(section, name); wrong {
				all = append(all, p)
			}
		}
	}
	twice := func(section string, flags Flags, qps float64, burst int) {
		for name, set := range map[string]bool{"kube-api-qps": qps != 0, "kube-api-burst": burst > 0} {
			if _, flag := flags[name]; flag && set {
				all = append(all, Problem{section + ".flags." + name, "the limit is set twice", "keep " + section + "." + strings.TrimPrefix(name, "kube-api-")})
			}
		}
	}
	twice("controllerManager", c.ControllerManager.Flags, c.ControllerManager.QPS, c.ControllerManager.Burst)
	twice("cloudControllerManager", c.CloudControllerManager.Flags, c.CloudControllerManager.QPS, c.CloudControllerManager.Burst)
	switch c.APIServer.Audit {
	case "", AuditOff:
	case AuditMetadata:
		// apiServer.audit sets some of these flags. The rest could disable the audit log.
		for _, name := range []string{"audit-policy-file", "audit-log-path", "audit-log-maxbackup", "audit-log-maxage", "audit-log-format", "audit-log-version", "audit-log-compress"} {
			if _, ok := c.APIServer.Flags[name]; ok {
				all = append(all, Problem{"apiServer.flags." + name, "apiServer.audit already configures the audit log", "keep one of the two"})
			}
		}
	default:
		all = append(all, Problem{"apiServer.audit", fmt.Sprintf("unknown audit setting %q", c.APIServer.Audit), "off or metadata"})
	}
	all = append(all, c.encryptionProblems()...)
	all = append(all, c.serviceProblems()...)
	all = append(all, c.metricsServerProblems()...)
	all = append(all, c.cloudProblems()...)
	all = append(all, c.tracingProblems()...)
	if _, ok := c.Scheduler.Config["leaderElection"]; ok {
		all = append(all, Problem{"scheduler.config.leaderElection", "Stormglass sets leader election itself", "Stormglass detects readiness by the kube-scheduler lease"})
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func (c Config) encryptionProblems() (all []Problem) {
	if !c.Encrypted() {
		return nil
	}
	if known := append(EncryptionProviders(), EncryptionKMS); !slices.Contains(known, c.APIServer.Encryption) {
		otherwise := EncryptionOff + ", " + strings.Join(known, ", ")
		all = append(all, Problem{"apiServer.encryption", fmt.Sprintf("unknown provider %q", c.APIServer.Encryption), strictyaml.Hint(c.APIServer.Encryption, known, otherwise)})
	}
	if _, ok := c.APIServer.Flags["encryption-provider-config"]; ok {
		all = append(all, Problem{"apiServer.flags.encryption-provider-config", "apiServer.encryption already sets this flag", "keep one of the two"})
	}
	return all
}

// tracingProblems checks the settings of `tracing`. Components send spans without TLS, so the receiver must be on this
// machine.
func (c Config) tracingProblems() (all []Problem) {
	t := c.Tracing
	if t.Endpoint == "" {
		if t != (SpanExport{}) {
			all = append(all, Problem{"tracing", "these fields have no effect without a receiver", "set tracing.endpoint: 127.0.0.1:4317"})
		}
		return all
	}
	host, port, err := net.SplitHostPort(t.Endpoint)
	if number, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || number == 0 || net.ParseIP(host) == nil || !net.ParseIP(host).IsLoopback() {
		all = append(all, Problem{"tracing.endpoint", fmt.Sprintf("%q is not a loopback address with a port", t.Endpoint), "for example 127.0.0.1:4317; spans are sent without TLS"})
	}
	if t.SamplingRatePerMillion < 0 || t.SamplingRatePerMillion > 1_000_000 {
		all = append(all, Problem{"tracing.samplingRatePerMillion", fmt.Sprintf("%d is out of bounds", t.SamplingRatePerMillion), "from 0 to 1000000"})
	}
	if strings.Trim(t.Token, tokenCharacters) != "" {
		all = append(all, Problem{"tracing.token", "the token has a character that is not a letter, a digit, - or _", "use another token"})
	}
	for _, section := range c.FlagSections() {
		for _, name := range slices.Sorted(maps.Keys(section.Flags)) {
			if name == "tracing-config-file" || strings.Contains(name, "distributed-tracing") {
				all = append(all, Problem{section.Path + "." + name, "tracing already sets this flag", "keep one of the two"})
			}
		}
	}
	return all
}

const tokenCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// metricsServerProblems checks that API servers can reach metrics-server, and that metrics-server runs if it has flags.
func (c Config) metricsServerProblems() (all []Problem) {
	if c.MetricsServer.Replicas == 0 {
		if len(c.MetricsServer.Flags) > 0 {
			all = append(all, Problem{"metricsServer.flags", "these flags have no effect without a metrics-server", "set metricsServer.replicas: 1"})
		}
		return all
	}
	// metrics-server makes the same checks (options.go). 15 s is the plane's default resolution, not upstream's.
	resolution, timeout := 15*time.Second, 10*time.Second
	set := func(name string, to *time.Duration) string {
		if d, err := time.ParseDuration(c.MetricsServer.Flags[name]); err == nil {
			*to = d
		}
		return "metricsServer.flags." + name
	}
	atResolution, atTimeout := set("metric-resolution", &resolution), set("kubelet-request-timeout", &timeout)
	switch {
	case resolution < 10*time.Second:
		all = append(all, Problem{atResolution, fmt.Sprintf("%s is too short", resolution), "must be at least 10s"})
	case timeout > resolution*9/10:
		all = append(all, Problem{atTimeout, fmt.Sprintf("%s is more than 90%% of metric-resolution, which is %s", timeout, resolution), "for example 5s"})
	}
	// With this flag, API servers do not accept a Service of type ExternalName, such as the Service of metrics-server.
	const flag = "enable-aggregator-routing"
	if on, _ := strconv.ParseBool(c.APIServer.Flags[flag]); on {
		all = append(all, Problem{"apiServer.flags." + flag, "with this flag, API servers cannot reach metrics-server, whose Service has an external name and no endpoints", "leave out this flag or metricsServer"})
	}
	return all
}

// serviceProblems checks the values of the settings that make components call a service, and reports flags that
// conflict with these settings.
func (c Config) serviceProblems() (all []Problem) {
	authentication := []string{"authentication-config", "authentication-token-webhook-config-file", "authentication-token-webhook-version", "enable-bootstrap-token-auth"}
	if c.APIServer.Authentication == AuthenticationOIDC {
		authentication = append(authentication, "oidc-") // upstream accepts either oidc- flags or authentication-config
	}
	for _, setting := range []struct {
		path, value string
		values      []string // valid values; the first is the default
		flags       []string // flags of API servers that the setting sets, or that conflict with it
	}{
		{
			"apiServer.authentication", c.APIServer.Authentication,
			[]string{AuthenticationCertificate, AuthenticationServiceAccount, AuthenticationBootstrapToken, AuthenticationOIDC, AuthenticationWebhook},
			authentication,
		},
		{
			"apiServer.authorization", c.APIServer.Authorization,
			[]string{AuthorizationRBAC, AuthorizationWebhook, AuthorizationWebhookDeny, AuthorizationABAC},
			[]string{"authorization-config", "authorization-mode", "authorization-webhook-", "authorization-policy-file"},
		},
		{
			"apiServer.auditWebhook", c.APIServer.AuditWebhook,
			[]string{AuditWebhookOff, AuditWebhookBatch, AuditWebhookBlocking},
			[]string{"audit-policy-file", "audit-webhook-config-file", "audit-webhook-mode"},
		},
		{"apiServer.conversionWebhook", c.APIServer.ConversionWebhook, []string{ConversionWebhookOff, ConversionWebhookOn}, nil},
		{"scheduler.extender", c.Scheduler.Extender, []string{ExtenderOff, ExtenderIgnorable, ExtenderRequired}, nil},
	} {
		switch {
		case setting.value == "" || setting.value == setting.values[0]:
			continue
		case !slices.Contains(setting.values, setting.value):
			otherwise := strings.Join(setting.values, ", ")
			all = append(all, Problem{setting.path, fmt.Sprintf("%q is not a valid value", setting.value), strictyaml.Hint(setting.value, setting.values, otherwise)})
			continue
		}
		for _, flag := range slices.Sorted(maps.Keys(c.APIServer.Flags)) {
			if covers(setting.flags, flag) {
				all = append(all, Problem{"apiServer.flags." + flag, setting.path + " already sets this flag", "keep one of the two"})
			}
		}
	}
	return all
}

// maxCloudDelay is the maximum delay of a response of the simulated cloud. maxLoadBalancerTime is the maximum time to
// create a load balancer.
const (
	maxCloudDelay       = time.Minute
	maxLoadBalancerTime = time.Hour
)

func (c Config) cloudProblems() (all []Problem) {
	const section = "cloudControllerManager"
	m := c.CloudControllerManager
	fail := func(path, msg, hint string) { all = append(all, Problem{path, msg, hint}) }
	if m.Replicas == 0 {
		if m.QPS != 0 || m.Burst != 0 || len(m.Flags) > 0 || m.Cloud != (Cloud{}) {
			fail(section+".replicas", "there is no "+KindCloudControllerManager+", so the other fields of this section have no effect", "write replicas: 1")
		}
		return all
	}
	cloud := section + ".cloud."
	within := func(name string, d Duration, most time.Duration, hint string) {
		if d.D() > most {
			fail(cloud+name, fmt.Sprintf("%s is out of bounds", d), hint)
		}
	}
	within("delay", m.Cloud.Delay, maxCloudDelay, "at most 1m")
	within("jitter", m.Cloud.Jitter, m.Cloud.Delay.D(), "at most the delay, because the jitter may be subtracted from the delay")
	within("loadBalancerTime", m.Cloud.LoadBalancerTime, maxLoadBalancerTime, "at most 1h")
	if t := m.Cloud.Throttle; t != 0 && (t < minThrottle || t > maxRate) {
		fail(cloud+"throttle", fmt.Sprintf("%v is out of bounds", t), throttleHint)
	}
	for name, quota := range map[string]int{"loadBalancers": m.Cloud.LoadBalancers, "routes": m.Cloud.Routes} {
		if quota < 0 || quota > maxQuota {
			fail(cloud+name, fmt.Sprintf("%d is out of bounds", quota), fmt.Sprintf("from 1 to %d", maxQuota))
		}
	}
	for _, name := range cidrFlags() {
		if _, ok := c.ControllerManager.Flags[name]; ok {
			fail("controllerManager.flags."+name, section+" already sets this flag", "leave the flag out: each node gets a part of 10.128.0.0/10 for its pods")
		}
	}
	return all
}

// maxQuota is the maximum quota of load balancers or routes. It is the number of load balancer addresses in
// 198.18.0.0/15.
const maxQuota = 1<<17 - 1

// cidrFlags returns the flags that assign each node a range of pod addresses. A route needs that range as its
// destination.
func cidrFlags() []string { return []string{"allocate-node-cidrs", "cluster-cidr"} }

// FlagSection holds the flags of one component and their path in a Config.
type FlagSection struct {
	Kind, Path string
	Flags      Flags
	own        []ownFlags
}

// FlagSections returns the config's flags, with a section for each kind of component that takes flags.
func (c Config) FlagSections() []FlagSection {
	return []FlagSection{
		{KindEtcd, "etcd.flags", c.Etcd.Flags, etcdOwn()},
		{KindAPIServer, "apiServer.flags", c.APIServer.Flags, apiServerOwn()},
		{KindScheduler, "scheduler.flags", c.Scheduler.Flags, schedulerOwn()},
		{KindControllerManager, "controllerManager.flags", c.ControllerManager.Flags, electedOwn()},
		{KindMetricsServer, "metricsServer.flags", c.MetricsServer.Flags, metricsServerOwn()},
		{KindCloudControllerManager, "cloudControllerManager.flags", c.CloudControllerManager.Flags, cloudOwn()},
	}
}

// FlagsOf returns the flags of a kind of component in a release, including the gates in FeatureGates that the component
// has in that release.
func (c Config) FlagsOf(kind string, r Release) Flags {
	for _, s := range c.FlagSections() {
		if s.Kind == kind {
			return c.withGates(kind, r, s.Flags)
		}
	}
	return nil
}

// flagProblem returns the first problem that a flag has in any release of its components.
func (c Config) flagProblem(s FlagSection, name string) (p Problem, wrong bool) {
	for _, r := range c.releasesOrNewest(s.Kind) {
		if p, wrong := s.flagProblem(r, name, s.Flags[name]); wrong {
			return p, true
		}
	}
	return p, false
}

// releasesOrNewest returns the releases of a kind's components. If the kind has no components or does not come with a
// release, it returns the newest release.
func (c Config) releasesOrNewest(kind string) []Release {
	if all := c.ReleasesOf(kind); len(all) > 0 {
		return all
	}
	return []Release{Newest()}
}

// ownFlags are flags that only Stormglass may set. hint tells the user why, or what to set instead. A name that ends in
// "-" covers all flags with that prefix.
type ownFlags struct {
	hint  string
	names []string
}

const (
	keysHint   = "each plane has its own credentials, in DIR/pki"
	listenHint = "each plane picks free ports on loopback"
	dataHint   = "choose the directory with --dir"
)

func etcdOwn() []ownFlags {
	return []ownFlags{
		{keysHint, []string{"cert-file", "key-file", "client-", "trusted-ca-file", "auto-tls", "peer-"}},
		{listenHint, []string{"name", "listen-", "advertise-client-urls", "initial-", "discovery", "discovery-", "force-new-cluster"}},
		{dataHint, []string{"data-dir", "wal-dir", "config-file", "log-outputs"}},
		{"fsync stays on: without it, no measurement is valid", []string{"unsafe-no-fsync"}},
	}
}

func apiServerOwn() []ownFlags {
	return []ownFlags{
		{keysHint, []string{
			"client-ca-file", "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "cert-dir", "requestheader-", "proxy-client-",
			"service-account-issuer", "service-account-key-file", "service-account-signing-", "etcd-cafile", "etcd-certfile", "etcd-keyfile",
		}},
		{listenHint, []string{"bind-address", "secure-port", "advertise-address", "etcd-servers", "endpoint-reconciler-type", "permit-port-sharing", "permit-address-sharing"}},
		{"anonymous requests stay off", []string{"anonymous-auth"}},
	}
}

// electedOwn returns the flags that Stormglass sets itself for leader-elected components.
func electedOwn() []ownFlags {
	return []ownFlags{
		{keysHint, []string{
			"client-ca-file", "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "cert-dir", "requestheader-", "kubeconfig",
			"authentication-", "authorization-", "root-ca-file", "service-account-private-key-file", "cluster-signing-cert-file",
			"cluster-signing-key-file", "use-service-account-credentials",
		}},
		{listenHint, []string{"bind-address", "secure-port", "master", "permit-port-sharing", "permit-address-sharing"}},
		{"Stormglass detects readiness by the component's lease", []string{"leader-elect", "leader-elect-resource-"}},
	}
}

func schedulerOwn() []ownFlags {
	return append(electedOwn(), ownFlags{"write scheduler.qps, scheduler.burst or scheduler.config", []string{"config", "kube-api-", "write-config-to"}})
}

func metricsServerOwn() []ownFlags {
	return []ownFlags{
		{keysHint, []string{
			"client-ca-file", "tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "cert-dir", "requestheader-", "kubeconfig",
			"authentication-", "authorization-", "kubelet-certificate-authority", "kubelet-client-", "kubelet-insecure-tls",
			"deprecated-kubelet-completely-insecure",
		}},
		{listenHint, []string{"bind-address", "secure-port", "permit-port-sharing", "permit-address-sharing"}},
		{"metrics-server has no feature gates", []string{"feature-gates", "emulated-version", "min-compatibility-version"}},
	}
}

func cloudOwn() []ownFlags {
	return append(electedOwn(),
		ownFlags{"the cloud is simulated, by " + KindCloudAPI, []string{"cloud-provider", "cloud-config", "allow-untagged-cloud", "webhook-", "webhooks"}},
		ownFlags{"each node gets a part of 10.128.0.0/10 for its pods", append(cidrFlags(), "cidr-allocator-type")})
}

// unsafe returns the reason why an API server flag must not have these values, or "" if it may have them.
func unsafe(name string, values []string) (hint string) {
	has := func(v string) bool { return slices.Contains(values, v) }
	switch name {
	case "authorization-mode":
		if !has("Node") || !has("RBAC") || has("AlwaysAllow") {
			return "Node and RBAC stay on, as in production; you can add others: Node,RBAC,Webhook"
		}
	case "enable-admission-plugins":
		if !has("NodeRestriction") {
			return "NodeRestriction stays on, as in production; you can add others: NodeRestriction,AlwaysPullImages"
		}
	case "disable-admission-plugins":
		if has("NodeRestriction") {
			return "NodeRestriction stays on, as in production"
		}
	case "enable-priority-and-fairness":
		if on, err := strconv.ParseBool(values[0]); err == nil && !on {
			return "priority and fairness stays on: without it, overload differs from production"
		}
	}
	return ""
}

func (s FlagSection) refused(name, value string) (hint string, refused bool) {
	if hint := unsafe(name, strings.Split(value, ",")); s.Kind == KindAPIServer && hint != "" {
		return hint, true
	}
	for _, o := range s.own {
		if covers(o.names, name) {
			return o.hint, true
		}
	}
	return "", false
}

// covers reports whether a list contains a flag. A name in the list that ends in "-" covers all flags with that prefix.
func covers(list []string, flag string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return name == flag || strings.HasSuffix(name, "-") && strings.HasPrefix(flag, name)
	})
}

// Check holds the settings that a component checks before anything starts.
type Check struct {
	// Flags are the flags that the user has set.
	Flags Flags `json:"flags"`
	// SchedulerConfig is a KubeSchedulerConfiguration as YAML, or empty.
	SchedulerConfig string `json:"schedulerConfig,omitempty"`
}

// Checked is the result of a Check by a component.
type Checked struct {
	// ConfigError is the error in SchedulerConfig, or empty.
	ConfigError string `json:"configError,omitempty"`
	// Known lists all flags of the component, and Unknown the checked flags that do not exist.
	Known   []string `json:"known"`
	Unknown []string `json:"unknown,omitempty"`
	// Wrong holds the error for each invalid value, by flag.
	Wrong map[string]string `json:"wrong,omitempty"`
	// Defaults are upstream's defaults of the checked flags.
	Defaults map[string]string `json:"defaults"`
}
