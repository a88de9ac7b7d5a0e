package topology_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func configs() map[string]control.Config {
	return map[string]control.Config{
		"default": {},
		"tuned": {
			FeatureGates: map[string]bool{"GenericWorkload": true, "FastLeaseKeepAlive": false},
			Etcd:         control.Etcd{Flags: control.Flags{"quota-backend-bytes": "8589934592"}},
			APIServer:    control.APIServer{Flags: control.Flags{"enable-admission-plugins": "NodeRestriction,PodNodeSelector", "max-requests-inflight": "800", "feature-gates": "WatchList=false"}},
			ControllerManager: control.ControllerManager{
				QPS: 12.5, Burst: 30, Flags: control.Flags{"node-monitor-grace-period": "20s"},
			},
			Scheduler: control.Scheduler{
				QPS: 100, PercentageOfNodesToScore: 10,
				Config: map[string]any{
					"parallelism":              8,
					"percentageOfNodesToScore": 50,
					"clientConnection":         map[string]any{"burst": 250, "kubeconfig": "/somewhere/else"},
				},
			},
		},
		"ha": {
			Etcd:              control.Etcd{Members: 3},
			APIServer:         control.APIServer{Replicas: 2, Descriptors: 1024, CPUs: 2},
			ControllerManager: control.ControllerManager{Replicas: 2},
			Scheduler:         control.Scheduler{Replicas: 2},
		},
		"three-without-links": {Etcd: control.Etcd{Members: 3}, NetworkFaults: control.NetworkFaultsOff},
		"one-with-links":      {NetworkFaults: control.NetworkFaultsOn},
		"encrypted":           {APIServer: control.APIServer{Encryption: "secretbox"}},
		"services": {APIServer: control.APIServer{
			Replicas: 2, Encryption: control.EncryptionKMS, Authentication: control.AuthenticationOIDC,
			Authorization: control.AuthorizationWebhook, AuditWebhook: control.AuditWebhookBlocking, ConversionWebhook: control.ConversionWebhookOn,
		}, Scheduler: control.Scheduler{Extender: control.ExtenderIgnorable}},
		"bootstrap-token-and-abac": {APIServer: control.APIServer{Authentication: control.AuthenticationBootstrapToken, Authorization: control.AuthorizationABAC}},
		"metrics-server":           {MetricsServer: control.MetricsServer{Replicas: 1, Flags: control.Flags{"metric-resolution": "10s", "kubelet-request-timeout": "5s"}}},
		"audited":                  {APIServer: control.APIServer{Audit: control.AuditMetadata}},
		"cloud": {CloudControllerManager: control.CloudControllerManager{
			Replicas: 2, QPS: 50, Flags: control.Flags{"concurrent-node-syncs": "5"},
			Cloud: control.Cloud{Delay: control.Duration(50 * time.Millisecond), Throttle: 10, LoadBalancers: 20},
		}},
	}
}

func build(t *testing.T, cfg control.Config) topology.Plan {
	t.Helper()
	ports := topology.Ports{
		"etcd-0": 2379, topology.PeerListener("etcd-0"): 2380, "kube-apiserver-0": 6443, "kube-scheduler-0": 10259, "kube-controller-manager-0": 10257,
	}
	for i, name := range topology.Listeners(cfg) {
		if ports[name] == 0 {
			ports[name] = 20000 + i
		}
	}
	defaults := topology.Defaults{control.KindEtcd: {"quota-backend-bytes": "0"}}
	plan, err := topology.Build(cfg, topology.Layout{Dir: "/plane", Sockets: "/plane"}, ports, defaults)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestGolden(t *testing.T) {
	for name, cfg := range configs() {
		t.Run(name, func(t *testing.T) {
			got := show(build(t, cfg))
			file := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the plan differs from %s (rewrite the file with -update and read the change):\n%s", file, got)
			}
		})
	}
}

func show(p topology.Plan) string {
	var b strings.Builder
	for _, proc := range p.Processes {
		fmt.Fprintf(&b, "== %s, %s at %s\n%s\n", proc.Name, proc.Kind, proc.Address, strings.Join(append(proc.Args, proc.Env...), "\n"))
		if proc.Descriptors > 0 {
			fmt.Fprintf(&b, "open files: %d\n", proc.Descriptors)
		}
		s := proc.Scrape
		fmt.Fprintf(&b, "scrape %s job %s instance %s as %s verified by %s\n\n", s.URL, s.Job, s.Instance, s.CertFile, s.CAFile)
	}
	fmt.Fprintf(&b, "== server %s\n", p.Server)
	for _, backend := range p.Backends {
		fmt.Fprintf(&b, "backend %s %s\n", backend.Name, backend.URL)
	}
	for _, proxy := range p.Proxies {
		fmt.Fprintf(&b, "\n== %s at %s, forward %v\n", proxy.Name, proxy.Listen, proxy.Forward)
		for _, to := range proxy.Targets {
			fmt.Fprintf(&b, "%s to %s: %s %s\n", proxy.From, to.To, to.Host, to.Upstream)
		}
	}
	fmt.Fprintf(&b, "\n== scheduler.yaml\n%s\n", p.SchedulerConfig)
	if p.Authorization != nil {
		fmt.Fprintf(&b, "== authorization.yaml\n%s\n", p.Authorization)
	}
	if p.AuditPolicy != nil {
		fmt.Fprintf(&b, "== audit-policy.yaml\n%s\n", p.AuditPolicy)
	}
	b.WriteString("== deviations\n")
	for _, d := range p.Deviations {
		fmt.Fprintf(&b, "%s %s=%s, not %s: %s\n", d.Component, d.Setting, d.Value, d.Default, d.Reason)
	}
	return b.String()
}

// TestFlagsOfReleases checks that each component has, in its release, the flags that a plan sets.
func TestFlagsOfReleases(t *testing.T) {
	for name, cfg := range configs() {
		if name == "tuned" { // the config sets feature gates of one release
			continue
		}
		for _, r := range control.Releases() {
			cfg.Version = r.Minor
			flags, err := os.ReadFile("../../control/flags/" + r.Minor + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			for _, proc := range build(t, cfg).Processes {
				if proc.Release.VersionOf(proc.Kind) == "" {
					continue
				}
				if proc.Release != r {
					t.Errorf("%s: %s has release %s, want %s", name, proc.Name, proc.Release.Minor, r.Minor)
				}
				for _, arg := range proc.Args {
					flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
					if !strings.Contains(string(flags), "\n"+proc.Kind+" "+flag+" ") {
						t.Errorf("%s: %s of release %s has no flag %s", name, proc.Name, r.Minor, flag)
					}
				}
			}
		}
	}
}

// TestLoopbackOnly checks that a plane listens only on the loopback address.
func TestLoopbackOnly(t *testing.T) {
	plan := build(t, configs()["ha"])
	for _, proxy := range plan.Proxies {
		if !strings.HasPrefix(proxy.Listen, topology.Host+":") {
			t.Errorf("proxy %s listens on another address: %s", proxy.Name, proxy.Listen)
		}
	}
	for _, proc := range plan.Processes {
		for _, arg := range proc.Args {
			name, value, _ := strings.Cut(arg, "=")
			if name == "--bind-address" && value != topology.Host || strings.HasPrefix(name, "--listen-") && !strings.Contains(value, "//"+topology.Host+":") {
				t.Errorf("%s listens on another address: %s", proc.Name, arg)
			}
		}
	}
}

// TestUserConfigIsNotChanged checks that Build adds its settings to a copy of the user's config.
func TestUserConfigIsNotChanged(t *testing.T) {
	cfg := configs()["tuned"]
	build(t, cfg)
	if !reflect.DeepEqual(cfg, configs()["tuned"]) {
		t.Errorf("Build changed its input: %+v", cfg)
	}
}

func TestSchedulerConfigLayers(t *testing.T) {
	var doc struct {
		PercentageOfNodesToScore, Parallelism int
		ClientConnection                      struct {
			Kubeconfig string
			QPS        float64
			Burst      int
		}
	}
	if err := yaml.Unmarshal(build(t, configs()["tuned"]).SchedulerConfig, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.PercentageOfNodesToScore != 10 || doc.Parallelism != 8 {
		t.Errorf("the fields of Scheduler must override its Config, and the rest of Config must stay: %+v", doc)
	}
	if c := doc.ClientConnection; c.QPS != 100 || c.Burst != 250 || c.Kubeconfig != "/plane/kubeconfigs/kube-scheduler.kubeconfig" {
		t.Errorf("client connection = %+v, want QPS 100, Burst 250 and the kubeconfig of kube-scheduler", c)
	}
}

// The endpoint of the receiver may be an IPv6 address. Its brackets would be a list in YAML without quotes.
func TestTracingConfig(t *testing.T) {
	for _, endpoint := range []string{"127.0.0.1:4317", "[::1]:4317"} {
		plan := build(t, control.Config{Tracing: control.SpanExport{Endpoint: endpoint, SamplingRatePerMillion: 5}})
		var got struct {
			Endpoint               string
			SamplingRatePerMillion int
		}
		if err := yaml.Unmarshal(plan.Tracing, &got); err != nil || got.Endpoint != endpoint || got.SamplingRatePerMillion != 5 {
			t.Errorf("%s: %+v, %v", plan.Tracing, got, err)
		}
	}
}
