package alerting

import (
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// A mapping replaces values of all kinds of matchers, and nothing else.
func TestMap(t *testing.T) {
	for expr, want := range map[string]string{
		`up{job="api"} == 0`:                       `up{job="kube-api"} == 0`,
		`up{job!="api"}`:                           `up{job!="kube-api"}`,
		`up{job=~"api|etcd"}`:                      `up{job=~"kube-api|etcd"}`,
		`up{job!~"api|a\\.b"}`:                     `up{job!~"kube-api|a\\.b"}`,
		`up{job=~".*api.*"}`:                       `up{job=~"\\[::1\\]"}`,
		`rate(x_total{job="api",cluster="a"}[5m])`: `rate(x_total{cluster="",job="kube-api"}[5m])`,
		`up{instance="api"}`:                       `up{instance="api"}`,
		`sum by (job) (up)   > 1`:                  `sum by (job) (up)   > 1`,
	} {
		s := Ruleset{mustParse(t, "groups: [{name: g, rules: [{alert: A, expr: 'up'}, {alert: B, expr: 'up{job=\"api\", cluster=\"a\"}'}, {alert: C, expr: 'up{job=~\".*api.*\"}'}]}]")[0]}
		s[0].Rules[0].Expr = expr
		mapped, err := s.Map([]Mapping{{"job", "api", "kube-api"}, {"job", ".*api.*", "[::1]"}, {"cluster", "a", ""}})
		if err != nil {
			t.Fatal(err)
		}
		if got := mapped[0].Rules[0].Expr; got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
		if s[0].Rules[0].Expr != expr {
			t.Errorf("the mapping changed the original to %s", s[0].Rules[0].Expr)
		}
	}
}

// A job is mapped only if exactly one recorded job can be meant.
func TestDerive(t *testing.T) {
	l := archivetest.New(t, scrape.Options{}, "etcd-0", "kube-apiserver-0", "kube-scheduler-0")
	l.Parts["etcd-0"].Add("etcd_server_has_leader", 1)
	l.Parts["kube-apiserver-0"].Add("apiserver_request_total", 1)
	l.Boundary(time.Second)
	l.Boundary(time.Second)
	a := l.Archive()
	const hint = " (map it with --map job=x:JOB)"
	for name, c := range map[string]struct {
		rules string
		want  []Mapping
		note  string
	}{
		"one job":              {`[{alert: A, expr: 'up{job="x"} == 0 or process_open_fds{job="x"} + apiserver_request_total{job="x"} > 1'}]`, []Mapping{{"job", "x", "kube-apiserver"}}, "job x of the rules is mapped to job kube-apiserver, the only job with these metrics (2 of the 2 metrics that the rules select were recorded; --map job=x:JOB overrides this)"},
		"two jobs":             {`[{alert: A, expr: 'process_open_fds{job="x"} > 1'}]`, nil, "job x of the rules was not scraped and is not mapped: its metrics were recorded under etcd, kube-apiserver, kube-scheduler" + hint},
		"no job":               {`[{alert: A, expr: 'etcd_server_has_leader{job="x"} > apiserver_request_total{job="x"}'}]`, nil, "job x of the rules was not scraped and is not mapped: its metrics were recorded under different jobs" + hint},
		"few of its metrics":   {`[{alert: A, expr: 'etcd_server_has_leader{job="x"} > kube_a{job="x"} + kube_b{job="x"}'}]`, nil, ""},
		"only up":              {`[{alert: A, expr: 'up{job="x"} == 0'}]`, nil, ""},
		"the rules tell apart": {`[{alert: A, expr: 'etcd_server_has_leader{job="x"} > etcd_server_has_leader{job="etcd"}'}]`, nil, "job x of the rules was not scraped and is not mapped: the rules also select job etcd" + hint},
		"two jobs of one":      {`[{alert: A, expr: 'etcd_server_has_leader{job="x"} > 1'}, {alert: B, expr: 'etcd_server_has_leader{job="y"} > 1'}]`, nil, "job x of the rules was not scraped and is not mapped: another job of the rules also has the metrics of job etcd" + hint},
		"scraped":              {`[{alert: A, expr: 'etcd_server_has_leader{job="etcd"} > 1'}]`, nil, ""},
		"one of a list":        {`[{alert: A, expr: 'etcd_server_has_leader{job=~"etcd|x"} > 1'}]`, nil, ""},
	} {
		got, notes, err := mustParse(t, "groups: [{name: g, rules: "+c.rules+"}]").Derive(t.Context(), a, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) || c.note == "" && len(notes) > 0 || c.note != "" && (len(notes) == 0 || notes[0] != c.note) {
			t.Errorf("%s: %v, notes %q", name, got, notes)
		}
	}
}
