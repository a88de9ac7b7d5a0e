package promimport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// gates judges a run of one phase by the given gates.
func gates(t *testing.T, a *archive.Archive, scrapes result.Scrapes, phase result.Phase, lines ...string) result.Result {
	t.Helper()
	s, err := scenario.Parse("lab.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: lab\nphases:\n  - {name: storm, for: 30s}\ngates:\n  - "+strings.Join(lines, "\n  - ")+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := gate.Compile(plan.Of(s))
	if err != nil {
		t.Fatal(err)
	}
	res, err := gate.Judge(t.Context(), compiled, &rundir.Recorded{Archive: a, Measurements: result.Measurements{Phases: []result.Phase{phase}, Scrapes: scrapes}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

const (
	leaderChanges = `{name: leaders, objective: leader-changes, max: 100/h}`
	rejected      = `{name: rejected, objective: too-many-requests, max: 5}`
)

// TestGatesReadTheCopy: gates read exactly what happened in a phase, although the Prometheus server does not know the
// phase, uses other names for the jobs, and has another clock.
func TestGatesReadTheCopy(t *testing.T) {
	l := newLab(t)
	s := l.found(t, Config{})
	if got := s.Jobs(); !slices.Equal(got, []string{"etcd", "kube-apiserver"}) {
		t.Errorf("jobs %v", got)
	}
	if s.Interval() != 30*time.Second || s.Ahead() != 7*time.Second {
		t.Errorf("scraped every %v, its clock %v ahead", s.Interval(), s.Ahead())
	}
	r := l.record(t, s, scrape.Options{})
	before := l.Parts[etcdHere]
	before.Add("etcd_server_leader_changes_seen_total", 1000)
	r.boundary()
	before.Add("etcd_server_leader_changes_seen_total", 1000)
	phase := result.Phase{Name: "storm", Start: r.boundary()}
	l.Parts[etcdThere].Add("etcd_server_leader_changes_seen_total", 30)
	l.Parts[apiserver].Add(`apiserver_request_total{code="200"}`, 10)
	l.Boundary(l.every)
	l.Parts[apiserver].Add(`apiserver_request_total{code="429"}`, 5) // a series that was not there before
	phase.End = r.boundary()
	before.Add("etcd_server_leader_changes_seen_total", 1000)
	l.Parts[apiserver].Add(`apiserver_request_total{code="429"}`, 1000)
	r.boundary()
	a, scrapes := r.archive()

	first, last, err := a.Bounds(t.Context())
	if err != nil || !first.Before(phase.Start) || !last.After(phase.End) {
		t.Errorf("the archive goes from %v to %v (%v)", first, last, err)
	}
	res := gates(t, a, scrapes, phase, leaderChanges, rejected)
	if res.Verdict != result.Pass || *res.Gates[0].Value != 30 || *res.Gates[1].Value != 5 {
		t.Errorf("%s: %v; %+v", res.Verdict, res.Reasons, res.Gates)
	}
	if len(scrapes.Failed) != 0 || scrapes.Done < 15 {
		t.Errorf("scrapes: %+v", scrapes)
	}
	if len(r.said) != 0 {
		t.Errorf("the recorder logged %v, want nothing", r.said)
	}
}

// TestLostData: data that a Prometheus server does not deliver counts as no data, never as a pass.
func TestLostData(t *testing.T) {
	for name, lose := range map[string]func(*lab){
		"a target is down for two scrapes": func(l *lab) {
			l.Parts[etcdHere].SetDown(true)
			l.Boundary(l.every)
			l.Boundary(l.every)
			l.Parts[etcdHere].SetDown(false)
			l.Boundary(l.every)
		},
		"it scrapes nothing for a while": func(l *lab) {
			l.Boundary(10 * l.every)
		},
		"it refuses a part of the copy": func(l *lab) {
			l.refuse = func(query string) bool {
				return strings.Contains(query, "kube-etcd-1") && strings.Contains(query, "process_")
			}
		},
		"it refuses all of the copy": func(l *lab) {
			l.refuse = func(query string) bool { return strings.Contains(query, "process_") }
		},
		"it stops scraping": func(l *lab) {
			l.stopped.Store(true)
		},
		"it goes away": func(l *lab) {
			l.refuse = func(string) bool { return true }
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.every = 100 * time.Millisecond
			for range 20 { // enough that this is its interval
				l.Boundary(l.every)
			}
			s := l.found(t, Config{})
			s.ingestion = 0
			r := l.record(t, s, scrape.Options{})
			r.boundary()
			phase := result.Phase{Name: "storm", Start: r.boundary()}
			lose(l)
			phase.End = r.boundary()
			a, scrapes := r.archive()
			res := gates(t, a, scrapes, phase, leaderChanges)
			if res.Verdict != result.NoData || res.Gates[0].Verdict != result.NoData {
				t.Errorf("%s: %v; %+v", res.Verdict, res.Reasons, res.Gates)
			}
			if len(scrapes.Failed) == 0 {
				t.Error("the copy counts no lost scrape")
			}
		})
	}
}

// TestOneLostScrape: a single lost scrape is counted, and the gate is judged.
func TestOneLostScrape(t *testing.T) {
	l := newLab(t)
	r := l.record(t, l.found(t, Config{}), scrape.Options{})
	phase := result.Phase{Name: "storm", Start: r.boundary()}
	l.Parts[etcdHere].SetDown(true)
	l.Boundary(l.every)
	l.Parts[etcdHere].SetDown(false)
	l.Boundary(l.every)
	phase.End = r.boundary()
	a, scrapes := r.archive()
	res := gates(t, a, scrapes, phase, leaderChanges)
	if res.Verdict != result.Pass || !strings.Contains(res.Gates[0].Detail, "scrapes of kube-etcd-0 lost in storm: 1") || scrapes.Failed["kube-etcd-0"] != 1 {
		t.Errorf("%s: %v; %+v; lost %v", res.Verdict, res.Reasons, res.Gates, scrapes.Failed)
	}
}

// TestAnotherProcess: a restarted component is recognised by its start time.
func TestAnotherProcess(t *testing.T) {
	l := newLab(t)
	r := l.record(t, l.found(t, Config{}), scrape.Options{})
	phase := result.Phase{Name: "storm", Start: r.boundary()}
	l.Parts[etcdHere].Restart()
	l.Parts[etcdHere].Add("etcd_server_leader_changes_seen_total", 1)
	phase.End = r.boundary()
	a, scrapes := r.archive()
	res := gates(t, a, scrapes, phase, leaderChanges)
	if res.Verdict != result.NoData || !strings.Contains(fmt.Sprint(res.Reasons), "kube-etcd-0 restarted") {
		t.Errorf("%s: %v", res.Verdict, res.Reasons)
	}
}

// TestSettings: each bad setting gives one line that says what to write.
func TestSettings(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "http.yml")
	if err := os.WriteFile(broken, []byte("basic_auth: {user: me}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const here = "http://127.0.0.1:9090"
	for want, c := range map[string]Config{
		`"127.0.0.1:9090" is not the URL of a Prometheus server (write http://HOST:9090)`:                             {URL: "127.0.0.1:9090"},
		`"ftp://x" is not the URL of a Prometheus server (write http://HOST:9090)`:                                    {URL: "ftp://x"},
		`the given text is not the URL`:                                                                               {URL: "ftp://me:secret@x"},
		`job "kubelet" is not a component (use one of etcd, kube-apiserver, kube-controller-manager, kube-scheduler)`: {URL: here, Jobs: map[string]string{"kubelet": "kubelet"}},
		`job "apiserver" is given as the job of etcd and of kube-apiserver`:                                           {URL: here, Jobs: map[string]string{"etcd": "apiserver"}},
		`every job is left out`:                    {URL: here, Jobs: map[string]string{"etcd": "", "kube-apiserver": "", "kube-controller-manager": "", "kube-scheduler": ""}},
		`"cluster=prod" is not a list of matchers`: {URL: here, Match: "cluster=prod"},
		`"job=\"x\"" matches the label job`:        {URL: here, Match: `job="x"`},
		`http.yml: `:                               {URL: here, HTTPConfig: broken},
		`missing.yml: no such file`:                {URL: here, HTTPConfig: "missing.yml"},
	} {
		_, err := New(c)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v:\n got %v\nwant %s", c, err, want)
		}
	}
	if _, err := New(Config{URL: "https://me:secret@mimir/prometheus", Match: `cluster="prod"`, Jobs: map[string]string{"etcd": ""}}); err != nil {
		t.Error(err)
	}
}

// TestNotFound: a Prometheus server that is missing, or has nothing of the cluster, is reported before anything starts.
func TestNotFound(t *testing.T) {
	l := newLab(t)
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "<html>Please log in</html>")
	}))
	t.Cleanup(login.Close)
	for want, c := range map[string]Config{
		"connection refused": {URL: "http://127.0.0.1:1"},
		"its jobs are apiserver, kube-etcd (to set the name of a job, add --prometheus-job kube-apiserver=NAME": {URL: l.url, Jobs: map[string]string{"etcd": "etcd", "kube-apiserver": "api"}},
		"it scrapes no target":                                 {URL: l.url, Match: `cluster="prod"`},
		"set --prometheus to the URL of Grafana's data source": {URL: login.URL},
	} {
		c.Now = l.ours
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Find(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), c.URL) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v:\n got %v\nwant %s", c, err, want)
		}
	}
}

// A target that refuses connections differs from one that was not scraped: the duration of a failed scrape is copied
// too.
func TestRefusedIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(*lab)
		want float64
	}{
		"refused": {func(l *lab) {
			l.Parts[etcdHere].SetDown(true)
			l.Boundary(l.every)
		}, 1},
		"not scraped": {func(l *lab) { l.Boundary(10 * l.every) }, 0},
	} {
		l := newLab(t)
		r := l.record(t, l.found(t, Config{}), scrape.Options{})
		r.boundary()
		c.lose(l)
		l.Parts[etcdHere].SetDown(false)
		r.boundary()
		a, _ := r.archive()
		first, last, err := a.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		refused, err := a.Range(t.Context(), `(1 - up{job="etcd"}) * on(job, instance) (scrape_duration_seconds{job="etcd"} < bool 1)`, first, last, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0.0
		for _, s := range refused {
			for _, p := range s.Points {
				seen = max(seen, p.V)
			}
		}
		if len(refused) == 0 || seen != c.want {
			t.Errorf("%s: %v of %d series, want %v", name, seen, len(refused), c.want)
		}
	}
}
