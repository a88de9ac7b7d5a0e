package promimport

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Queries use the server's names for the jobs, and select the configured cluster.
func TestConditionsAreAskedInTheirWords(t *testing.T) {
	s, err := New(Config{URL: "http://127.0.0.1:1", Match: `cluster="prod"`, Jobs: map[string]string{"kube-scheduler": "sched", "kube-controller-manager": ""}})
	if err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		`max(up{job="kube-apiserver"})`:               `max(up{cluster="prod",job=~"apiserver"})`,
		`up{job="kube-scheduler"} / ignoring(job) up`: `up{cluster="prod",job=~"sched"} / ignoring (job) up{cluster="prod"}`,
		`sum(rate(x_total{job="mine"}[30000ms]))`:     `sum(rate(x_total{cluster="prod",job="mine"}[30s]))`,
		`x{job="kube-controller-manager"}`:            `x{cluster="prod",job!~".*"}`, // it is left out
		`x{job=~"etcd|kube-controller-manager"}`:      `x{cluster="prod",job=~"kube-etcd"}`,
		`1`:                                           `1`,
	} {
		if got, err := s.translate(expr); err != nil || got != want {
			t.Errorf("%s becomes %s, %v; want %s", expr, got, err, want)
		}
	}
	if _, err := s.translate("max("); err == nil {
		t.Error("translate accepts invalid PromQL")
	}
}

func TestLiveValueIsTheLatest(t *testing.T) {
	l := newLab(t)
	live := l.found(t, Config{})
	l.Parts[etcdHere].Add("etcd_server_leader_changes_seen_total", 3)
	l.Boundary(l.every)
	got, err := live.Instant(t.Context(), `max(etcd_server_leader_changes_seen_total{job="etcd"})`, l.ours())
	if err != nil || len(got) != 1 || got[0].V != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = live.Instant(t.Context(), "2", l.ours())
	if err != nil || len(got) != 1 || got[0].V != 2 {
		t.Errorf("a scalar: %+v, %v", got, err)
	}
	l.refuse = func(string) bool { return true }
	if _, err := live.Instant(t.Context(), "up", l.ours()); err == nil || !strings.Contains(err.Error(), l.url) {
		t.Errorf("a refused query: %v", err)
	}
}

func TestAlertThatFiresThere(t *testing.T) {
	var asked string
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/rules":
			fmt.Fprint(w, `{"status":"success","data":{"groups":[{"name":"g","file":"f","interval":60,"rules":[
				{"type":"recording","name":"r","query":"up","health":"ok"},
				{"type":"alerting","name":"TheirPager","query":"up","health":"ok","state":"firing","alerts":[],"labels":{},"annotations":{},"duration":0}]}]}}`)
		default:
			asked = r.FormValue("query")
			fires := strings.Contains(asked, `alertname="TheirPager"`)
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`,
				map[bool]string{true: `{"metric":{"alertname":"TheirPager","severity":"critical"},"value":[1,"1"]}`}[fires])
		}
	}))
	defer theirs.Close()
	s, err := New(Config{URL: theirs.URL, Match: `cluster="prod"`})
	if err != nil {
		t.Fatal(err)
	}
	for alert, want := range map[string]bool{"TheirPager": true, "Other": false} {
		fires, summary, err := s.Firing(t.Context(), alert, time.Now())
		if err != nil || fires != want || fires && summary != "severity critical" {
			t.Errorf("%s: %v, %q, %v", alert, fires, summary, err)
		}
	}
	for _, part := range []string{`__name__="ALERTS"`, `alertstate="firing"`, `cluster="prod"`} {
		if !strings.Contains(asked, part) {
			t.Errorf("%s is not in %s", part, asked)
		}
	}
	names, err := s.Alerts(t.Context())
	if err != nil || len(names) != 1 || names[0] != "TheirPager" {
		t.Errorf("%v, %v", names, err)
	}
}
