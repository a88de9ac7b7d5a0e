package control_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestProblems(t *testing.T) {
	flags := func(kind string, kv ...string) control.Config {
		f := control.Flags{}
		for i := 0; i < len(kv); i += 2 {
			f[kv[i]] = kv[i+1]
		}
		switch kind {
		case control.KindEtcd:
			return control.Config{Etcd: control.Etcd{Flags: f}}
		case control.KindAPIServer:
			return control.Config{APIServer: control.APIServer{Flags: f}}
		case control.KindScheduler:
			return control.Config{Scheduler: control.Scheduler{Flags: f}}
		}
		return control.Config{ControllerManager: control.ControllerManager{Flags: f}}
	}
	cloud := func(c control.Cloud) control.Config {
		return control.Config{CloudControllerManager: control.CloudControllerManager{Replicas: 1, Cloud: c}}
	}
	ms := func(n int) control.Duration { return control.Duration(n) * control.Duration(time.Millisecond) }
	for name, c := range map[string]struct {
		config control.Config
		want   string // the problem's path and the beginning of its hint; "" means no problem
	}{
		"zero":                {control.Config{}, ""},
		"ordinary flags":      {flags(control.KindEtcd, "quota-backend-bytes", "1", "snapshot-count", "5000"), ""},
		"fsync off":           {flags(control.KindEtcd, "unsafe-no-fsync", "true"), "etcd.flags.unsafe-no-fsync: fsync stays on"},
		"listener":            {flags(control.KindEtcd, "listen-client-urls", "http://0.0.0.0:1"), "etcd.flags.listen-client-urls: each plane picks"},
		"peer keys":           {flags(control.KindEtcd, "peer-auto-tls", "true"), "etcd.flags.peer-auto-tls: each plane has its own credentials"},
		"anonymous":           {flags(control.KindAPIServer, "anonymous-auth", "true"), "apiServer.flags.anonymous-auth: anonymous"},
		"no RBAC":             {flags(control.KindAPIServer, "authorization-mode", "Node,AlwaysAllow"), "apiServer.flags.authorization-mode: Node and RBAC"},
		"webhook too":         {flags(control.KindAPIServer, "authorization-mode", "Node,RBAC,Webhook"), ""},
		"no NodeRestriction":  {flags(control.KindAPIServer, "enable-admission-plugins", "AlwaysPullImages"), "apiServer.flags.enable-admission-plugins: NodeRestriction stays"},
		"no fairness":         {flags(control.KindAPIServer, "enable-priority-and-fairness", "false"), "apiServer.flags.enable-priority-and-fairness: priority"},
		"scheduler limits":    {flags(control.KindScheduler, "kube-api-qps", "5"), "scheduler.flags.kube-api-qps: write scheduler.qps"},
		"election":            {flags(control.KindControllerManager, "leader-elect", "false"), "controllerManager.flags.leader-elect: Stormglass detects readiness"},
		"election timing":     {flags(control.KindControllerManager, "leader-elect-lease-duration", "30s"), ""},
		"negative":            {control.Config{ControllerManager: control.ControllerManager{QPS: -2}}, "controllerManager.qps: greater than 0 and at most 1000000, or -1 for no limit"},
		"over 100 percent":    {control.Config{Scheduler: control.Scheduler{PercentageOfNodesToScore: 101}}, "scheduler.percentageOfNodesToScore: from 0 (upstream's default) to 100"},
		"audited":             {control.Config{APIServer: control.APIServer{Audit: "metadata"}}, ""},
		"encrypted":           {control.Config{APIServer: control.APIServer{Encryption: "aescbc"}}, ""},
		"encryption misspelt": {control.Config{APIServer: control.APIServer{Encryption: "secret-box"}}, `apiServer.encryption: did you mean "secretbox"?`},
		"encryption by KMS":   {control.Config{APIServer: control.APIServer{Encryption: "vault"}}, "apiServer.encryption: off, secretbox, aesgcm, aescbc"},
		"encryption twice": {control.Config{APIServer: control.APIServer{Encryption: "aescbc", Flags: control.Flags{"encryption-provider-config": "/p"}}},
			"apiServer.flags.encryption-provider-config: keep one of the two"},
		"issuers of two settings": {control.Config{APIServer: control.APIServer{Authentication: "oidc", Flags: control.Flags{"oidc-issuer-url": "https://issuer.example.com"}}},
			"apiServer.flags.oidc-issuer-url: keep one of the two"},
		"an issuer and a token webhook": {control.Config{APIServer: control.APIServer{Authentication: "webhook", Flags: control.Flags{"oidc-issuer-url": "https://issuer.example.com"}}}, ""},
		"cache of an authorization webhook": {control.Config{APIServer: control.APIServer{Authorization: "webhook", Flags: control.Flags{"authorization-webhook-cache-authorized-ttl": "1m"}}},
			"apiServer.flags.authorization-webhook-cache-authorized-ttl: keep one of the two"},
		"audit off":        {control.Config{APIServer: control.APIServer{Audit: "off", Flags: control.Flags{"audit-log-path": "-"}}}, ""},
		"audit of bodies":  {control.Config{APIServer: control.APIServer{Audit: "Request"}}, "apiServer.audit: off or metadata"},
		"audit of several": {control.Config{APIServer: control.APIServer{Audit: "metadata", Replicas: 2}}, ""},
		"audit twice": {control.Config{APIServer: control.APIServer{Audit: "metadata", Flags: control.Flags{"audit-policy-file": "/p"}}},
			"apiServer.flags.audit-policy-file: keep one"},
		"limit twice": {control.Config{ControllerManager: control.ControllerManager{QPS: 5, Flags: control.Flags{"kube-api-qps": "6"}}},
			"controllerManager.flags.kube-api-qps: keep controllerManager.qps"},
		"three members":           {control.Config{Etcd: control.Etcd{Members: 3, Topology: "external"}, NetworkFaults: "off"}, ""},
		"too many members":        {control.Config{Etcd: control.Etcd{Members: 9}}, "etcd.members: use 1, 3, 5 or 7"},
		"as many as there may be": {control.Config{Etcd: control.Etcd{Members: 7}}, ""},
		"fewer than none":         {control.Config{APIServer: control.APIServer{Replicas: -1}}, "apiServer.replicas: from 1 to 16"},
		"a crowd":                 {control.Config{Scheduler: control.Scheduler{Replicas: 17}}, "scheduler.replicas: from 1 to 16; one replica is the leader"},
		"descriptors to start":    {control.Config{APIServer: control.APIServer{Descriptors: 100}}, "apiServer.descriptors: from 256 (an API server does not start with fewer) to 1048576"},
		"descriptors of old":      {control.Config{APIServer: control.APIServer{Descriptors: 1024}}, ""},
		"processors":              {control.Config{APIServer: control.APIServer{CPUs: -1}}, "apiServer.cpus: from 1 to 1024"},
		"topology":                {control.Config{Etcd: control.Etcd{Topology: "remote"}}, "etcd.topology: stacked or external"},
		"metrics-server":          {control.Config{MetricsServer: control.MetricsServer{Replicas: 1, Flags: control.Flags{"metric-resolution": "30s"}}}, ""},
		"metrics-servers":         {control.Config{MetricsServer: control.MetricsServer{Replicas: 2}}, "metricsServer.replicas: 0 or 1"},
		"flags of no metrics-server": {control.Config{MetricsServer: control.MetricsServer{Flags: control.Flags{"metric-resolution": "30s"}}},
			"metricsServer.flags: set metricsServer.replicas: 1"},
		"metrics every second": {control.Config{MetricsServer: control.MetricsServer{Replicas: 1, Flags: control.Flags{"metric-resolution": "1s"}}},
			"metricsServer.flags.metric-resolution: must be at least 10s"},
		"kubelets slower than metrics": {control.Config{MetricsServer: control.MetricsServer{Replicas: 1, Flags: control.Flags{"metric-resolution": "10s"}}},
			"metricsServer.flags.kubelet-request-timeout: for example 5s"},
		"gates of metrics-server": {control.Config{MetricsServer: control.MetricsServer{Replicas: 1, Flags: control.Flags{"feature-gates": "WatchList=false"}}},
			"metricsServer.flags.feature-gates: metrics-server has no feature gates"},
		"kubelets unverified": {control.Config{MetricsServer: control.MetricsServer{Replicas: 1, Flags: control.Flags{"kubelet-insecure-tls": "true"}}},
			"metricsServer.flags.kubelet-insecure-tls: each plane has its own credentials"},
		"aggregation by endpoints": {control.Config{MetricsServer: control.MetricsServer{Replicas: 1}, APIServer: control.APIServer{Flags: control.Flags{"enable-aggregator-routing": "true"}}},
			"apiServer.flags.enable-aggregator-routing: leave out this flag or metricsServer"},
		"gates":           {control.Config{FeatureGates: map[string]bool{"GenericWorkload": true, "FastLeaseKeepAlive": false, "AllAlpha": false}}, ""},
		"gate unknown":    {control.Config{FeatureGates: map[string]bool{"GenericWorkloads": true}}, `featureGates.GenericWorkloads: did you mean "GenericWorkload"?`},
		"gate locked":     {control.Config{FeatureGates: map[string]bool{"DynamicResourceAllocation": false}}, "featureGates.DynamicResourceAllocation: leave it out"},
		"gate of nothing": {control.Config{FeatureGates: map[string]bool{"Zzzzzzzzz": true}}, "featureGates.Zzzzzzzzz: to list feature gates, run: kube-apiserver --help"},
		"a cloud":         {cloud(control.Cloud{Delay: ms(50), Jitter: ms(50), Throttle: 0.5, LoadBalancers: 1, Routes: 1}), ""},
		"a cloud without its controller manager": {control.Config{CloudControllerManager: control.CloudControllerManager{Cloud: control.Cloud{Throttle: 5}}},
			"cloudControllerManager.replicas: write replicas: 1"},
		"a cloud of minutes":    {cloud(control.Cloud{Delay: ms(60_001)}), "cloudControllerManager.cloud.delay: at most 1m"},
		"a cloud before asking": {cloud(control.Cloud{Delay: ms(5), Jitter: ms(6)}), "cloudControllerManager.cloud.jitter: at most the delay"},
		"a negative quota":      {cloud(control.Cloud{Routes: -1}), "cloudControllerManager.cloud.routes: from 1 to 131071"},
		"throttled to nothing":  {cloud(control.Cloud{Throttle: 0.001}), "cloudControllerManager.cloud.throttle: requests a second, from 0.01"},
		"addresses of nodes twice": {control.Config{CloudControllerManager: control.CloudControllerManager{Replicas: 1}, ControllerManager: control.ControllerManager{Flags: control.Flags{"cluster-cidr": "10.0.0.0/8"}}},
			"controllerManager.flags.cluster-cidr: leave the flag out"},
		"another cloud": {control.Config{CloudControllerManager: control.CloudControllerManager{Replicas: 1, Flags: control.Flags{"cloud-provider": "aws"}}},
			"cloudControllerManager.flags.cloud-provider: the cloud is simulated"},
		"a flag of the cloud controllers": {control.Config{CloudControllerManager: control.CloudControllerManager{Replicas: 1, Flags: control.Flags{"concurrent-node-sync": "5"}}},
			`cloudControllerManager.flags.concurrent-node-sync: did you mean "concurrent-node-syncs"?`},
		"network faults": {control.Config{NetworkFaults: "yes"}, "networkFaults: on or off"},
		"election of the scheduler": {control.Config{Scheduler: control.Scheduler{Config: map[string]any{"leaderElection": map[string]any{"leaderElect": false}}}},
			"scheduler.config.leaderElection: Stormglass detects readiness"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range c.config.Problems() {
				got = append(got, p.Path+": "+p.Hint)
			}
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got problems %v, want none", got)
			case c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)):
				t.Errorf("got problems %q, want %q", got, c.want)
			}
		})
	}
}

// TestWarnings checks the warning for an even number of etcd members.
func TestWarnings(t *testing.T) {
	for members, want := range map[int]string{
		0: "", 1: "", 3: "", 5: "", 7: "",
		6: "6 members have a quorum of 4 and survive the loss of 2; 5 members survive as many (use 5 or 7 members; 7 survive the loss of 3)",
		2: "2 members have a quorum of 2 and survive the loss of 0; 1 members survive as many (use 1 or 3 members; 3 survive the loss of 1)",
		4: "4 members have a quorum of 3 and survive the loss of 1; 3 members survive as many (use 3 or 5 members; 5 survive the loss of 2)",
	} {
		var got string
		for _, w := range (control.Config{Etcd: control.Etcd{Members: members}}).Warnings() {
			got += w.Msg + " (" + w.Hint + ")"
		}
		if got != want {
			t.Errorf("warning for %d members = %q, want %q", members, got, want)
		}
	}
}

func TestComponents(t *testing.T) {
	cfg := control.Config{Etcd: control.Etcd{Members: 3}, APIServer: control.APIServer{Replicas: 2}}
	want := "etcd-0 etcd-1 etcd-2 kube-apiserver-0 kube-apiserver-1 kube-scheduler-0 kube-controller-manager-0"
	if got := strings.Join(cfg.Components(), " "); got != want {
		t.Errorf("components = %s, want another order or other names", got)
	}
	if !cfg.HasLinks() || (control.Config{}).HasLinks() {
		t.Error("HasLinks must be true for several etcd members and false for one")
	}
}

// Services that a config enables start before the API servers that call them.
func TestServicesOfAConfig(t *testing.T) {
	cfg := control.Config{APIServer: control.APIServer{
		Replicas: 2, Encryption: control.EncryptionKMS, Authentication: control.AuthenticationOIDC,
		Authorization: control.AuthorizationWebhookDeny, AuditWebhook: control.AuditWebhookBatch, ConversionWebhook: control.ConversionWebhookOn,
	}, Scheduler: control.Scheduler{Extender: control.ExtenderRequired}}
	want := "etcd-0 kms-plugin-0 kms-plugin-1 oidc-issuer-0 authorization-webhook-0 audit-webhook-0 conversion-webhook-0 scheduler-extender-0 kube-apiserver-0 kube-apiserver-1 kube-scheduler-0 kube-controller-manager-0"
	if got := strings.Join(cfg.Components(), " "); got != want {
		t.Errorf("components = %s, want the services before the API servers", got)
	}
	cfg.APIServer.Authentication = control.AuthenticationWebhook
	if n := cfg.Count(control.KindTokenWebhook); n != 1 || cfg.Count(control.KindOIDCIssuer) != 0 {
		t.Errorf("token webhooks = %d, want 1 and no OIDC issuer", n)
	}
}

func TestLockBelongsToTheOpenFile(t *testing.T) {
	dir := t.TempDir()
	if used, err := control.InUse(dir); used || err != nil {
		t.Errorf("InUse of a new directory = %v %v, want false", used, err)
	}
	lock, err := control.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := control.SetHolder(lock, control.Holder{PID: 42, Socket: "/s"}); err != nil {
		t.Fatal(err)
	}
	if _, err := control.LockDir(dir); !errors.Is(err, control.ErrInUse) {
		t.Errorf("second LockDir = %v, want ErrInUse", err)
	}
	if used, err := control.InUse(dir); !used || err != nil {
		t.Errorf("InUse of a locked directory = %v %v, want true", used, err)
	}
	if h, err := control.ReadHolder(dir); h.PID != 42 || h.Socket != "/s" || err != nil {
		t.Errorf("ReadHolder = %+v %v, want process 42 and /s", h, err)
	}
	lock.Close()
	if used, err := control.InUse(dir); used || err != nil {
		t.Errorf("InUse after the lock is released = %v %v, want false", used, err)
	}
	if _, err := control.Dial(dir); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("Dial without a supervisor = %v, want ErrNotRunning", err)
	}
}

func TestLoadRefusesAnotherSchema(t *testing.T) {
	dir := t.TempDir()
	if _, err := control.Load(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of an empty directory = %v, want os.ErrNotExist", err)
	}
	for content, want := range map[string]string{"{": "unexpected end", `{"schema":"stormglass.cluster/v9"}`: "schema"} {
		if err := os.WriteFile(filepath.Join(dir, control.ClusterFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := control.Load(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Load of %s = %v, want %q", content, err, want)
		}
	}
}

// script writes a shell script that replaces the controlplane program.
func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "controlplane")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestStartReturnsTheSupervisorsMessage(t *testing.T) {
	binary := script(t, `echo "etcd-0 ready" >&2; echo "controlplane: it broke" >&2; echo "  a line of a log" >&2; exit 4`)
	_, err := control.Start(context.Background(), control.StartOptions{Binary: binary, Dir: "d"})
	var exit *control.ExitError
	if !errors.As(err, &exit) || exit.Code != control.ExitEnvironment || exit.Msg != "it broke\n  a line of a log" {
		t.Errorf("Start = %#v, want the supervisor's message and exit code", err)
	}
	binary = script(t, "exit 1")
	_, err = control.Start(context.Background(), control.StartOptions{Binary: binary, Dir: "d"})
	if want := binary + " exited with code 1 and printed no message"; err == nil || err.Error() != want {
		t.Errorf("Start of a silent program = %v, want %s", err, want)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { // when the supervisor runs
		_, _ = read.Read(make([]byte, 1))
		cancel(cause)
	}()
	defer read.Close()
	_, err = control.Start(ctx, control.StartOptions{Binary: script(t, `echo up >&2; exec cat <&3`), Dir: "d", Progress: write})
	if !errors.Is(err, cause) {
		t.Errorf("Start = %v, want the cause of its context", err)
	}
	write.Close()
}

func TestStartPassesTheConfigAndReadsTheCluster(t *testing.T) {
	binary := script(t, `grep -q '"qps":7' || exit 2
trap 'exit 0' TERM
echo '{"schema":"stormglass.cluster/v1","server":"'"$*"'"}'
cat <&3 >/dev/null 2>&1 &
wait`) // `read` may miss a signal that arrives just before it; `wait` does not
	s, err := control.Start(context.Background(), control.StartOptions{
		Binary: binary, Dir: "d", Config: &control.Config{ControllerManager: control.ControllerManager{QPS: 7}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Cluster().Server; got != "up --dir d --output json --config -" {
		t.Errorf("arguments = %q, want up --dir d --output json --config -", got)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// ReadStart copies all output before the result, and does not wait for output after it.
func TestReadStart(t *testing.T) {
	read, write := io.Pipe()
	defer write.Close() // keep the stream open, like a running supervisor
	go func() {
		_, _ = io.WriteString(write, "etcd-0   ready\n{\"level\":\"info\"}\nthe control plane   ready\n{\"schema\":\"stormglass.cluster/v1\",\"server\":\"https://there\"}\n")
	}()
	var messages strings.Builder
	c, ready := control.ReadStart(read, &messages)
	if !ready || c.Server != "https://there" || messages.String() != "etcd-0   ready\n{\"level\":\"info\"}\nthe control plane   ready\n" {
		t.Errorf("ReadStart = %v, %+v with messages %q; want the result and only the messages before it", ready, c, messages.String())
	}
	messages.Reset()
	if c, ready := control.ReadStart(strings.NewReader("controlplane: it broke"), &messages); ready || messages.String() != "controlplane: it broke" {
		t.Errorf("ReadStart without a result = %+v with messages %q, want only the messages", c, messages.String())
	}
}
