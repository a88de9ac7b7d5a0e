package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/node"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Target is the cluster under load.
type Target struct {
	// Cluster describes the target in the record of the run.
	Cluster result.Cluster
	// KubernetesVersion is the version of the API server. EtcdVersion is known only for bundled control planes.
	KubernetesVersion, EtcdVersion string
	// Versions are the versions of a bundled control plane's components at the start, by name.
	Versions map[string]string
	// Load is the client configuration of the load. Its user is never in system:masters, because priority and fairness
	// exempts that group. On a user's cluster, Setup sets it.
	Load *rest.Config
	// Admin is the client configuration with which the run creates and removes its own objects.
	Admin *rest.Config
	// Requests counts the requests that the run itself sends with client-go clients.
	Requests *apiclient.Counter
	// Processes are the processes of a bundled control plane at its start.
	Processes []generator.Process
	// Scrape lists the metrics endpoints that the run scrapes.
	Scrape []control.ScrapeTarget
	// Namespace is the main namespace of the run's objects. Labels are the labels of all its objects.
	Namespace string
	Labels    map[string]string
	// Notes describes peculiarities of this target, one line each. They appear in the confirmation before the start and
	// in the report.
	Notes []string
	// Waiting, if not nil, is a function that Setup calls before it waits. `what` names the awaited condition. Setup
	// calls `done` when the wait is over.
	Waiting func(what string) (done func())
	// NodesAlone means that the run only simulates nodes here and sends no load.
	NodesAlone bool

	credentials credentials   // credentials of the simulated nodes
	accounts    *nodeAccounts // ServiceAccounts of the simulated nodes, set by Setup; nil if the nodes have none

	own      bool // whether Stormglass started the target's control plane
	runID    string
	signer   node.Authority // signs the node certificates of a bundled control plane
	identity *identity      // identity of the load on a user's cluster, set by Setup
	needs    []need         // permissions that the load's identity needs
	// namespaces are the run's namespaces, including those over which loads spread their objects.
	namespaces []string
	tenants    bool // whether any load has tenants (users that it impersonates)
	widgets    bool // whether any load uses the built-in custom resource widgets
	devices    bool // whether the simulated nodes have devices
	batches    bool // whether the run creates objects from templates
	// manifests are the objects that the setup and actions create.
	manifests []scenario.Manifest
	// converts is the part of a CustomResourceDefinition that names the conversion webhook of a bundled control plane,
	// or nil if the plane has no such webhook.
	converts map[string]any
	// scrapeNotes are the entries of Notes that describe how the run gets metrics.
	scrapeNotes []string
	plan        *plan.Plan
	deadline    *deadline // deadline of the run on a user's cluster
	uid         types.UID // UID of the first namespace, set by Setup
	cleanupJob  bool      // whether a Job in the cluster also cleans up
	made        made      // cluster-scoped objects that the run has created with Admin since Setup
}

func newTarget(runID string, s *plan.Plan) *Target {
	t := &Target{runID: runID, Requests: &apiclient.Counter{}, Namespace: namespaceOf(runID), Labels: Labels(runID), plan: s, widgets: usesWidgets(s), devices: hasDevices(s), manifests: s.Manifests(), batches: len(s.Batches) > 0}
	t.namespaces = t.BatchNamespaces()
	for _, l := range s.Loads {
		t.namespaces = append(t.namespaces, l.NamespacesIn(t.Namespace)[1:]...)
		t.tenants = t.tenants || l.Impersonates()
	}
	return t
}

// FromPlane returns the Target for a run of a scenario on a bundled control plane.
func FromPlane(c control.Cluster, runID string, s *plan.Plan) (*Target, error) {
	t := newTarget(runID, s)
	for user, cfg := range map[string]**rest.Config{"admin": &t.Admin, "loadgen": &t.Load} {
		if c.Kubeconfigs[user] == "" {
			return nil, fmt.Errorf("control plane in %s: %s lists no kubeconfig of user %q", c.Dir, control.ClusterFile, user)
		}
		var err error
		if *cfg, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfigs[user]); err != nil {
			return nil, fmt.Errorf("kubeconfig %q of the control plane in %s: %w", user, c.Dir, err)
		}
		(*cfg).QPS = -1 // a client-side rate limit would change the offered load
	}
	t.Admin = t.Requests.Counted(t.Admin)
	var err error
	if t.signer, err = node.NewSigner(t.Load, c.NodeCA); err != nil {
		return nil, fmt.Errorf("control plane in %s: %w", c.Dir, err)
	}
	if url := c.ConversionWebhook(); url != "" {
		authority, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("control plane in %s: %w", c.Dir, err)
		}
		t.converts = map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(authority)},
		}
	}
	t.own = true
	t.credentials = credentials{chosen: true, tokens: t.ownIdentities() && s.Nodes.Identity == scenario.IdentityToken, why: "as nodes.identity says"}
	t.KubernetesVersion, t.EtcdVersion = c.KubernetesVersion, c.EtcdVersion
	t.Cluster = result.Cluster{
		Bundled: true, Name: "bundled", Server: c.Server, Deviations: c.Deviations,
		ReadySeconds: c.ReadyAt.Sub(c.StartedAt).Seconds(),
	}
	t.Versions = map[string]string{}
	for _, component := range c.Components {
		t.offer(component.Scrape)
		if component.Version != "" {
			t.Versions[component.Name] = component.Version
		}
		t.Processes = append(t.Processes, generator.Process{Component: component.Kind, Instance: component.Name, PID: component.PID})
	}
	return t, nil
}

// FromKubeconfig returns the Target for a run on a user's cluster. It checks that the cluster answers and that the user
// has the permissions that the scenario needs. It changes nothing. Each error is one line with a hint. FromKubeconfig
// calls `tell` on long waits.
func FromKubeconfig(ctx context.Context, k Kubeconfig, runID string, s *plan.Plan, tell func(string)) (*Target, error) {
	t := newTarget(runID, s)
	client, user, err := t.reachFrom(ctx, k, tell)
	if err != nil {
		return nil, err
	}
	if err := t.checkHTTP2(ctx); err != nil {
		return nil, fmt.Errorf("cluster %s (%s): %w", t.Cluster.Name, t.Cluster.Server, err)
	}
	t.own = k.ownPlane(t.Admin)
	defer Waiting(tell, "the cluster to report the user's permissions")()
	needs, err := t.allNeeds(newLookup(client.Discovery(), s))
	if err == nil {
		if err = checkAccess(ctx, client, needs); err != nil {
			err = fmt.Errorf("%s %w", user, err)
		}
	}
	if err == nil {
		err = t.checkCredentials(ctx, client, user)
	}
	if err == nil {
		err = t.refuseExisting(ctx, client)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", t.Cluster.Name, err)
	}
	t.describe(ctx, k, client)
	return t, nil
}

// allNeeds returns the permissions that the user needs. They include the permissions of the load's identity, because a user can
// grant only permissions that they have.
func (t *Target) allNeeds(look *lookup) (all []need, err error) {
	if t.needs, err = loadNeeds(look, t.Namespace); err != nil {
		return nil, err
	}
	batches, err := batchNeeds(look, t.Namespace)
	return slices.Concat(adminNeeds(t.Namespace, t.plan), batches, t.needs), err
}

// describe adds notes about peculiarities of a user's cluster to t.Notes.
func (t *Target) describe(ctx context.Context, k Kubeconfig, client kubernetes.Interface) {
	s := t.plan
	t.offer(apiServerScrape(t.Admin))
	t.noteProxy()
	if as := k.AuthInfo.Impersonate; as != "" {
		t.Notes = append(t.Notes, fmt.Sprintf("the run creates and removes objects as user %q (--as), but the load uses its own ServiceAccount", as))
	}
	t.Notes = append(t.Notes, differences(s.ControlPlane)...)
	ask, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	t.scrapeNotes = t.apiServers(ask, client)
	t.Notes = append(t.Notes, t.scrapeNotes...)
	if s.Nodes.Count > 0 {
		t.Notes = append(t.Notes, "DaemonSets that tolerate every taint also place a pod on each simulated node; the run removes these pods with the nodes")
	}
}

func (t *Target) offer(s control.ScrapeTarget) {
	t.Scrape = append(t.Scrape, s)
	t.Cluster.Targets = append(t.Cluster.Targets, s.Instance)
}

// ScrapedElsewhere records that an existing Prometheus server scrapes these instances and provides their metrics. The
// run then scrapes nothing itself.
func (t *Target) ScrapedElsewhere(prometheus string, instances []string) {
	t.Scrape = nil
	t.Cluster.Prometheus, t.Cluster.Targets = prometheus, instances
	t.Notes = slices.DeleteFunc(t.Notes, func(n string) bool { return slices.Contains(t.scrapeNotes, n) })
}

// Jobs returns the sorted scrape jobs whose metrics are available. A gate on the metrics of any other job cannot be
// judged here.
func (t *Target) Jobs() []string {
	var jobs []string
	for _, s := range t.Scrape {
		jobs = append(jobs, s.Job)
	}
	slices.Sort(jobs)
	return slices.Compact(jobs)
}

// Identities returns how the simulated nodes authenticate: with certificates from a bundled control plane's node CA or
// from the CSR API of a user's cluster, or with tokens of ServiceAccounts. restricted is true if RBAC, not the Node
// authorizer, permits their requests. Nodes of shared fidelity use the identity of the load. Call it after Setup.
func (t *Target) Identities(spec scenario.Nodes) (ids node.Identities, restricted bool) {
	switch {
	case spec.Fidelity == node.Shared:
		return node.NewShared(t.Load), true
	case t.accounts != nil:
		return t.accounts.ServiceAccounts, true
	}
	return t.authority(), false
}

// aroundPhases is the maximum time for which the nodes of a run exist outside of its phases: before the first and after
// the last, in total.
const aroundPhases = 2 * time.Hour

// authority returns the signer of the nodes' certificates. Nodes renew a certificate after 70% of its validity or
// later. The validity is so long that the run ends before any renewal. If the run only simulates nodes, its length is
// unknown, and the certificates get the longest validity.
func (t *Target) authority() node.Authority {
	if t.signer != nil {
		return t.signer
	}
	life := time.Duration(0)
	if longest := t.plan.Longest; longest > 0 && !t.NodesAlone {
		life = (longest + aroundPhases) * 3 / 2
	}
	return node.NewCSRSigner(t.Admin, t.Labels, life)
}

// KubeletAPI returns the configuration of the kubelet API that simulated nodes serve: at the scenario's address, or on
// the loopback device for a bundled control plane. It returns nil if they serve none. Call it after Setup.
func (t *Target) KubeletAPI(ctx context.Context) (*node.API, error) {
	var at netip.AddrPort
	if address := t.plan.Nodes.KubeletAddress; address != "" {
		var err error
		if at, err = netip.ParseAddrPort(address); err != nil {
			return nil, err
		}
	} else if !t.own {
		return nil, nil
	}
	client, err := t.client()
	if err != nil {
		return nil, err
	}
	const name, key = "extension-apiserver-authentication", "client-ca-file"
	found, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get configmap %s: %w", name, err)
	}
	return &node.API{At: at, Client: t.Admin, ClientCA: []byte(found.Data[key]), Sign: t.authority().Serve}, nil
}

// Setup creates the run's namespaces, the DeviceClass, the permissions of tenants, the identity of the load on a user's
// cluster, the ServiceAccounts of nodes, and the objects of the scenario's setup and batches. It also checks by dry run
// the objects that actions and loads will create. If Setup fails, Cleanup removes the objects that it has created.
func (t *Target) Setup(ctx context.Context) error {
	t.Admin = t.made.recorded(t.Admin)
	client, err := t.client()
	if err != nil {
		return err
	}
	t.deadline = t.newDeadline(ctx, client)
	return t.setup(ctx, client)
}

// client returns a client with the identity Admin.
func (t *Target) client() (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(t.Admin)
	if err != nil {
		return nil, fmt.Errorf("create a client for cluster %s: %w", t.Cluster.Name, err)
	}
	return client, nil
}

// waiting announces a wait. Call `done` at the end of the wait.
func (t *Target) waiting(what string) (done func()) {
	if t.Waiting == nil {
		return func() {}
	}
	return t.Waiting(what)
}

func (t *Target) setup(ctx context.Context, client kubernetes.Interface) error {
	if err := t.refuseExisting(ctx, client); err != nil {
		return err
	}
	if err := t.tryCreates(ctx, false); err != nil {
		return err
	}
	if err := t.makeNamespaces(ctx, client); err != nil {
		return err
	}
	if t.createsPodsEarly() {
		if err := t.awaitServiceAccount(ctx, client); err != nil {
			return err
		}
	}
	if err := t.makeDeviceClass(ctx, client); err != nil {
		return err
	}
	if err := t.tryCreates(ctx, true); err != nil {
		return err
	}
	if t.widgets {
		done := t.waiting("the cluster to serve the custom resource")
		err := object.DefineWidgets(ctx, t.Admin, t.meta("").Labels)
		done()
		if err != nil {
			return err
		}
	}
	if err := t.giveRights(ctx, client); err != nil {
		return err
	}
	if err := t.makeNodeAccounts(ctx, client); err != nil {
		return err
	}
	if err := t.createSetup(ctx, client); err != nil {
		return err
	}
	return t.makeObjects(ctx)
}

// giveRights grants the load and tenants the permissions that they need. On a user's cluster, it first creates the
// identity of the load; a bundled control plane already has one.
func (t *Target) giveRights(ctx context.Context, client kubernetes.Interface) error {
	if t.Cluster.Bundled {
		return t.setupTenants(ctx, client)
	}
	if err := t.makeIdentity(ctx, client); err != nil {
		return err
	}
	return awaitRights(ctx, t.waiting, loadAccount, t.Load, t.needs)
}

// setupTenants grants tenants their permissions on a bundled control plane. The load's own certificate already has
// permissions there.
func (t *Target) setupTenants(ctx context.Context, client kubernetes.Interface) error {
	if !t.tenants {
		return nil
	}
	var err error
	if t.needs, err = loadNeeds(newLookup(client.Discovery(), t.plan), t.Namespace); err != nil {
		return err
	}
	if err := t.grant(ctx, client, t.Namespace, t.needs, []rbacv1.Subject{tenants()}); err != nil {
		return err
	}
	cfg := rest.CopyConfig(t.Load)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: scenario.TenantUser("any"), Groups: []string{scenario.TenantsGroup}}
	return awaitRights(ctx, t.waiting, scenario.TenantsGroup, cfg, t.needs)
}

// Cleanup stops the background work of Setup. Then it removes every object with the run's label, as the function
// Cleanup does, and cluster-scoped objects that have lost the label. It waits until all are gone. It calls notice with
// the reason for a wait.
func (t *Target) Cleanup(ctx context.Context, notice func(string)) error {
	c, err := newCleaner(t.Admin, t.runID)
	if err == nil {
		c.metadata, err = metadata.NewForConfig(t.Admin)
	}
	if err != nil {
		return fmt.Errorf("create a client for cluster %s: %w", t.Cluster.Name, err)
	}
	c.definitions, c.devices, c.jobs = t.widgets, t.DeviceClass() != "", t.cleanupJob
	for _, k := range scenario.Creatables() {
		if slices.ContainsFunc(t.manifests, func(m scenario.Manifest) bool { return m.Creatable == k }) {
			c.created = append(c.created, k)
			c.definitions = c.definitions || k.Defines()
		}
	}
	if t.batches {
		c.definitions, c.discovery = true, c.client.Discovery()
	}
	c.notice, c.made = notice, &t.made
	if s := t.plan; s != nil && s.Nodes.Count > 0 {
		c.nodePrefix = t.NodePrefix()
	}
	return t.cleanup(ctx, c)
}

func (t *Target) cleanup(ctx context.Context, c *cleaner) error {
	var err error
	if t.identity != nil {
		err = t.identity.close()
	}
	if t.accounts != nil {
		t.accounts.Close()
	}
	t.deadline.end()
	left := c.persist(ctx)
	if left == nil && len(c.removed.Unseen) == 0 {
		t.made.forget()
	}
	return errors.Join(err, left)
}

const (
	// firstNotice is how long a wait lasts before it is logged.
	firstNotice = 3 * time.Second
	// noticeInterval is the time between later logs of the same wait.
	noticeInterval = 10 * time.Second
)

// Waiting reports a wait: it calls tell with the length of the wait so far, first after firstNotice and then at every
// noticeInterval, until `done` is called.
func Waiting(tell func(line string), what string) (done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	began := time.Now()
	telling.Go(func() {
		for next := firstNotice; apiclient.Pause(ctx, next); next = noticeInterval {
			tell(fmt.Sprintf("waiting for %s, %s so far", what, time.Since(began).Round(time.Second)))
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}
