package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
)

const calm = `phases:
- {name: storm, for: 1h, load: [{kind: requests, verb: get, rate: 100/s, objects: 1}]}
- {name: later, for: 1h, load: [{kind: requests, name: further, verb: get, rate: 100/s, objects: 1}]}
`

// A condition on the generator's own requests ends the phase. Then the loads send no more requests.
func TestFuseOfOwnRequestsStopsLoad(t *testing.T) {
	server, err := stubapi.Start(stubapi.Options{Policy: stubapi.Only(
		func(r stubapi.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.Path, "/configmaps/")
		},
		stubapi.Always(stubapi.Answer{Status: http.StatusTooManyRequests}),
	)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s := parse(t, calm)
	r := underway(t, s)
	if r.aborts, err = (Options{Scenario: s, Fuse: Fuse{AbortOn: []string{"throttled=50%"}}}).aborts(plan.Of(s)); err != nil {
		t.Fatal(err)
	}
	r.aborts.follow(r.samples)
	r.loads, err = newLoads(t.Context(), plan.Of(s), load.Target{Config: server.Config(), Namespace: "storm", Samples: r.samples, Stalls: r.self.Stalls()}, r.dir.Path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r = newRun(r.site, r.instruments, r.drivers)
	ctx, cancel := context.WithCancelCause(t.Context())
	beside, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- r.samples.Run(beside) }()
	go func() { ended <- r.aborts.watch(beside, r.archiver, cancel) }()
	err = r.phases.run(ctx)
	stop()
	var aborted abortError
	if !errors.As(err, &aborted) || !strings.HasPrefix(aborted.Error(), "abortOn: limit throttled in phase storm, ") || !strings.HasSuffix(aborted.Error(), ": 100% is over 50%") {
		t.Errorf("the run ended with the error %v", err)
	}
	before := len(server.Exchanges())
	if err := r.loads.start(r.loads.of("later"))(); err != nil {
		t.Error(err)
	}
	if after := len(server.Exchanges()); after != before {
		t.Errorf("%d requests after the end of the phase, want 0", after-before)
	}
	if err := errors.Join(<-ended, <-ended, r.archiver.close(), r.samples.Close()); err != nil {
		t.Error(err)
	}
}

// On a user's cluster, a run has the default conditions unless a flag turns them off. On other targets it has only the
// conditions of flags.
func TestUsualConditions(t *testing.T) {
	theirs := cluster.Kubeconfig{Files: "theirs"}
	for _, c := range []struct {
		at    cluster.Kubeconfig
		flags []string
		want  []string
	}{
		{cluster.Kubeconfig{}, nil, nil},
		{cluster.Kubeconfig{}, []string{"latency=2s,for=5s"}, []string{"latency=2s,for=5s"}},
		{theirs, nil, usualFuse()},
		{theirs, []string{"latency=2s,over=storm"}, append([]string{"latency=2s,over=storm"}, usualFuse()...)},
		{theirs, []string{NoFuse}, nil},
		{theirs, []string{"expr=max(up),min=1", NoFuse, "alert=EtcdNoLeader"}, []string{"expr=max(up),min=1", "alert=EtcdNoLeader"}},
	} {
		a, err := Options{Scenario: parse(t, calm), Kubeconfig: c.at, Fuse: Fuse{AbortOn: c.flags}}.aborts(plan.Of(parse(t, calm)))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := a.texts(); !slices.Equal(got, c.want) {
			t.Errorf("conditions for --abort-on %v: %v, want %v", c.flags, got, c.want)
		}
	}
}

func TestFuseOfAlertsOfTheirs(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte("groups: [{name: g, rules: [{alert: TheirPager, expr: 'max(up{job=\"theirs\"}) > 5'}]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := parse(t, calm)
	pager := Fuse{AbortOn: []string{"alert=TheirPager"}}
	if _, err := (Options{Scenario: s, Fuse: pager}).aborts(plan.Of(s)); err == nil || exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), `unknown alert "TheirPager"`) {
		t.Errorf("error for an unknown alert: %v", err)
	}
	object := `{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "spec": {"groups": [{"name": "g", "rules": [{"alert": "Other", "expr": "other_total > up"}]}]}}`
	if err := os.WriteFile(filepath.Join(filepath.Dir(rules), "object.json"), []byte(object), 0o600); err != nil {
		t.Fatal(err)
	}
	pager.Rules = filepath.Dir(rules)
	if a, err := (Options{Scenario: s, Fuse: pager}).aborts(plan.Of(s)); err != nil || !slices.Equal(a.keep, []string{"other_total", "up"}) {
		t.Errorf("with a directory of rules: %v", err)
	}
	pager.Rules = rules
	if _, err := (Options{Scenario: s, Fuse: pager}).aborts(plan.Of(s)); err != nil {
		t.Error(err)
	}
	if set, err := (Fuse{Rules: rules, Map: []string{"job=theirs:ours"}}).rules(); err != nil || set[0].Rules[0].Expr != `max(up{job="ours"}) > 5` {
		t.Errorf("mapped rules %v (%v), want rules of job ours", set, err)
	}
	if _, err := (Options{Scenario: s, Fuse: pager, Prometheus: &promimport.Config{}}).aborts(plan.Of(s)); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("no usage error for rules in a file together with --prometheus: %v", err)
	}
	pager.Rules = rules + "x"
	if _, err := (Options{Scenario: s, Fuse: pager}).aborts(plan.Of(s)); err == nil || !strings.Contains(err.Error(), "--abort-rules "+rules+"x: no such file") {
		t.Errorf("%v", err)
	}

	// The method check asks the Prometheus server of the test which alerts it has.
	var status int
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"status":"success","data":{"groups":[{"name":"g","rules":[{"type":"alerting","name":"TheirPager","state":"firing","health":"ok"}]}]}}`)
	}))
	defer theirs.Close()
	source, err := promimport.New(promimport.Config{URL: theirs.URL})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	check := func(alert string) error {
		a, err := Options{Scenario: s, Prometheus: &promimport.Config{URL: theirs.URL}, Fuse: Fuse{AbortOn: []string{"alert=" + alert}}}.aborts(plan.Of(s))
		if err != nil {
			t.Fatal(err)
		}
		return a.check(t.Context(), source, func(line string) { notes = append(notes, line) })
	}
	if err := check("TheirPager"); err != nil || len(notes) > 0 {
		t.Errorf("%v, %v", err, notes)
	}
	if err := check("TheirPagr"); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), `did you mean "TheirPager"?`) {
		t.Errorf("%v", err)
	}
	status = http.StatusNotFound // like a server that only serves queries
	if err := check("TheirPagr"); err != nil || len(notes) != 1 {
		t.Errorf("%v, %v", err, notes)
	}
}

func TestFuseBelongsToAUsersCluster(t *testing.T) {
	for _, f := range []Fuse{{NoLock: true}, {TakeLock: "r1"}, {CleanupImage: "x"}} {
		o := Options{Scenario: parse(t, calm), Fuse: f}
		if err := o.checkFuse(); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "requires --kubeconfig") {
			t.Errorf("%+v: %v", f, err)
		}
		o.Kubeconfig.Files = "theirs"
		if err := o.checkFuse(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	both := Options{Kubeconfig: cluster.Kubeconfig{Files: "theirs"}, Fuse: Fuse{NoLock: true, TakeLock: "r1"}}
	if err := both.checkFuse(); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("%v", err)
	}
}

// A dry run returns an error for a --controlplane program that a run could not start.
func TestDryRunChecksTheControlPlaneProgram(t *testing.T) {
	dir := t.TempDir()
	pipe, plain, program := filepath.Join(dir, "pipe"), filepath.Join(dir, "plain"), filepath.Join(dir, "program")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o700), os.WriteFile(plain, nil, 0o600), os.WriteFile(program, nil, 0o700)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		pipe: "not an executable file", plain: "not an executable file", dir: "not an executable file", os.DevNull: "not an executable file",
		filepath.Join(dir, "none"): "no such file", program: "", "": "",
	} {
		_, err := DryRun(t.Context(), Options{Scenario: parse(t, calm), ControlPlane: file})
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", file, err)
			}
			continue
		}
		if exitcode.Of(err) != exitcode.Environment || !strings.HasPrefix(err.Error(), "--controlplane "+file+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("--controlplane %q: error %v, want %q", file, err, want)
		}
	}
}

func TestPeakOverMaxRateIsRefused(t *testing.T) {
	o := Options{Scenario: parse(t, calm), Fuse: Fuse{MaxRate: 99}}
	_, err := DryRun(t.Context(), o)
	if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "the loads of phase storm send up to 100 requests/s (requests 100/s), but --max-rate is 99/s") {
		t.Errorf("%v", err)
	}
	o.Fuse.MaxRate = 100
	p, err := DryRun(t.Context(), o)
	if err != nil || p.PeakPerSecond != 100 {
		t.Errorf("%v, %v", p.PeakPerSecond, err)
	}
}
