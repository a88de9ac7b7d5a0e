package control

import (
	"slices"
	"strconv"
	"strings"
)

// The kinds of component. They are also the names of the programs.
const (
	KindEtcd              = "etcd"
	KindAPIServer         = "kube-apiserver"
	KindScheduler         = "kube-scheduler"
	KindControllerManager = "kube-controller-manager"
	KindMetricsServer     = "metrics-server"

	KindCloudControllerManager = "cloud-controller-manager"
	KindCloudAPI               = "cloud-api"

	KindKMSPlugin            = "kms-plugin"
	KindOIDCIssuer           = "oidc-issuer"
	KindTokenWebhook         = "token-webhook"
	KindAuthorizationWebhook = "authorization-webhook"
	KindAuditWebhook         = "audit-webhook"
	KindConversionWebhook    = "conversion-webhook"
	KindSchedulerExtender    = "scheduler-extender"
)

// Stage is a group of components that start together. Stages start in order and stop in
// reverse order.
type Stage int

// The stages, in the order in which they start.
const (
	StageStorage  Stage = iota // the etcd members
	StageServices              // Stormglass's services (docs/reference/services.md)
	StageAPI                   // API servers
	StageClients               // components that need an API server
)

// Kind describes a kind of component.
type Kind struct {
	Name  string
	Stage Stage
	// Leads reports whether the processes of the kind elect a leader.
	Leads bool
	// Field is the path of the Config field that sets how many processes of the kind run, or whether they run.
	Field string
	count func(Config) int
}

// KindTable describes all kinds in the order in which they start.
func KindTable() []Kind {
	one := func(present func(APIServer) bool) func(Config) int {
		return func(c Config) int {
			if present(c.APIServer) {
				return 1
			}
			return 0
		}
	}
	return []Kind{
		{Name: KindEtcd, Stage: StageStorage, Leads: true, Field: "etcd.members", count: func(c Config) int { return max(c.Etcd.Members, 1) }},
		// Each API server has its own KMS plugin, as if it ran on a separate host.
		{Name: KindKMSPlugin, Stage: StageServices, Field: "apiServer.encryption", count: func(c Config) int {
			if c.APIServer.Encryption == EncryptionKMS {
				return max(c.APIServer.Replicas, 1)
			}
			return 0
		}},
		{Name: KindOIDCIssuer, Stage: StageServices, Field: "apiServer.authentication", count: one(func(a APIServer) bool { return a.Authentication == AuthenticationOIDC })},
		{Name: KindTokenWebhook, Stage: StageServices, Field: "apiServer.authentication", count: one(func(a APIServer) bool { return a.Authentication == AuthenticationWebhook })},
		{Name: KindAuthorizationWebhook, Stage: StageServices, Field: "apiServer.authorization", count: one(func(a APIServer) bool { return a.AsksAuthorization() })},
		{Name: KindAuditWebhook, Stage: StageServices, Field: "apiServer.auditWebhook", count: one(func(a APIServer) bool { return a.SendsAudit() })},
		{Name: KindConversionWebhook, Stage: StageServices, Field: "apiServer.conversionWebhook", count: one(func(a APIServer) bool { return a.Converts() })},
		{Name: KindSchedulerExtender, Stage: StageServices, Field: "scheduler.extender", count: func(c Config) int {
			if c.Scheduler.HasExtender() {
				return 1
			}
			return 0
		}},
		{Name: KindCloudAPI, Stage: StageServices, Field: "cloudControllerManager.replicas", count: func(c Config) int { return min(c.CloudControllerManager.Replicas, 1) }},
		{Name: KindAPIServer, Stage: StageAPI, Field: "apiServer.replicas", count: func(c Config) int { return max(c.APIServer.Replicas, 1) }},
		{Name: KindScheduler, Stage: StageClients, Leads: true, Field: "scheduler.replicas", count: func(c Config) int { return max(c.Scheduler.Replicas, 1) }},
		{Name: KindControllerManager, Stage: StageClients, Leads: true, Field: "controllerManager.replicas", count: func(c Config) int { return max(c.ControllerManager.Replicas, 1) }},
		{Name: KindMetricsServer, Stage: StageClients, Field: "metricsServer.replicas", count: func(c Config) int { return c.MetricsServer.Replicas }},
		{Name: KindCloudControllerManager, Stage: StageClients, Leads: true, Field: "cloudControllerManager.replicas", count: func(c Config) int { return c.CloudControllerManager.Replicas }},
	}
}

// KindOf returns the kind with the given name, or the zero Kind if the name is unknown.
func KindOf(name string) Kind {
	table := KindTable()
	if i := slices.IndexFunc(table, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return table[i]
	}
	return Kind{}
}

// Kinds lists the kinds of component in the order in which they start.
func Kinds() []string { return kindsThat(func(Kind) bool { return true }) }

// KindsOf lists the kinds of component that start in a stage.
func KindsOf(stage Stage) []string { return kindsThat(func(k Kind) bool { return k.Stage == stage }) }

// ElectedKinds lists the kinds whose leader holds a lease.
func ElectedKinds() []string {
	return kindsThat(func(k Kind) bool { return k.Leads && k.Stage == StageClients })
}

func kindsThat(want func(Kind) bool) (names []string) {
	for _, k := range KindTable() {
		if want(k) {
			names = append(names, k.Name)
		}
	}
	return names
}

// ComponentName returns the name of process i of a kind, such as "etcd-0".
func ComponentName(kind string, i int) string { return kind + "-" + strconv.Itoa(i) }

// Count returns the number of processes of a kind in a plane with this config.
func (c Config) Count(kind string) int {
	if k := KindOf(kind); k.count != nil {
		return k.count(c)
	}
	return 0
}

// Components returns the names of all processes of a plane with this config, in the order in which they start.
func (c Config) Components() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, c.ComponentsOf(kind)...)
	}
	return names
}

// Kinds lists the kinds that have at least one process in a plane with this config.
func (c Config) Kinds() []string {
	return kindsThat(func(k Kind) bool { return k.count(c) > 0 })
}

// ComponentsOf returns the names of the processes of a kind in a plane with this config.
func (c Config) ComponentsOf(kind string) []string {
	var names []string
	for i := range c.Count(kind) {
		names = append(names, ComponentName(kind, i))
	}
	return names
}

// The roles of a Selector.
const (
	// RoleLeader is the leader of the etcd members, or the replica that holds the lease.
	RoleLeader = "leader"
	// RoleFollower is a member or replica that does not lead: the first by name that no other fault has stopped.
	RoleFollower = "follower"
)

// Selector selects components of a plane.
type Selector struct {
	// Kind is the kind of the components.
	Kind string
	// Role is RoleLeader, RoleFollower or empty.
	Role string
	// Name is the name of one component. Without a name and a role, the Selector selects all components of the kind.
	Name string
	// Index is the number at the end of Name, such as 1 for "etcd-1".
	Index int
}

// ParseSelector parses a selector: "etcd" (all members), "etcd-0", "etcd-leader" or "etcd-follower", and the same for
// other kinds. Kinds that elect no leader have no roles.
func ParseSelector(text string) (Selector, bool) {
	for _, kind := range Kinds() {
		if text == kind {
			return Selector{Kind: kind}, true
		}
		rest, ok := strings.CutPrefix(text, kind+"-")
		if !ok {
			continue
		}
		if rest == RoleLeader || rest == RoleFollower {
			return Selector{Kind: kind, Role: rest}, KindOf(kind).Leads
		}
		i, err := strconv.Atoi(rest)
		return Selector{Kind: kind, Name: text, Index: i}, err == nil && i >= 0 && text == ComponentName(kind, i)
	}
	return Selector{}, false
}

// ComponentKind returns the kind of the component with the given name, or "" if the name is not valid.
func ComponentKind(name string) string {
	if s, ok := ParseSelector(name); ok && s.Name != "" {
		return s.Kind
	}
	return ""
}
