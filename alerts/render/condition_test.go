package render

import (
	"strings"
	"testing"
)

func TestCondition(t *testing.T) {
	a, b, c := condition{{"etcd"}}, condition{{"kube-apiserver"}}, condition{{"kube-scheduler"}}
	for _, test := range []struct {
		got  condition
		want string
	}{
		{a, "$etcd"},
		{a.or(b), "(or $etcd $kubeApiserver)"},
		{b.or(a).or(b), "(or $etcd $kubeApiserver)"},
		{a.and(b), "(and $etcd $kubeApiserver)"},
		{a.and(b).or(c), "(or $kubeScheduler (and $etcd $kubeApiserver))"},
		{a.and(b).or(b), "$kubeApiserver"},
		{a.or(b).and(c), "(or (and $etcd $kubeScheduler) (and $kubeApiserver $kubeScheduler))"},
		{a.and(always()), "$etcd"},
	} {
		if got := test.got.helm(); got != test.want {
			t.Errorf("%v is %s, want %s", test.got, got, test.want)
		}
	}
	if !always().isAlways() || !a.or(always()).isAlways() || a.isAlways() || condition(nil).isAlways() {
		t.Error("isAlways is wrong for one of the conditions")
	}
	if never := a.and(nil); len(never) != 0 {
		t.Errorf("with nothing that is there: %v", never)
	}
}

// A rule that cannot be written as a template causes an error, not another rule.
func TestChainOfMixedOperands(t *testing.T) {
	c, err := newChart()
	if err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{
		`sum(up{job="etcd"} or up{job="kube-apiserver"})`,
		`up{job="etcd"} == 0 unless on (cluster) up{job="kube-apiserver"}`,
		`up{job="etcd"} or vector(0) or up{job="kube-apiserver"}`,
	} {
		_, forms, err := c.needs(expr)
		if err != nil {
			t.Fatal(err)
		}
		if len(forms) < 2 {
			t.Errorf("%s is always the same", expr)
		}
		if text, err := c.chain(expr); err == nil || !strings.Contains(err.Error(), `write it as a chain of "or"`) {
			t.Errorf("%s became %s", expr, text)
		}
	}
}

// Helm renders the braces and placeholders of a text as intended.
func TestActions(t *testing.T) {
	for text, want := range map[string]string{
		`{{ $labels.job }}`:             `{{ "{{" }} $labels.job {{ "}}" }}`,
		`up{job="STORMGLASS_JOB_etcd"}`: `up{job="{{ $etcd }}"}`,
		`up{job=~\"STORMGLASS_JOB_etcd|STORMGLASS_JOB_kube-scheduler\"}`: `up{job=~\"{{ include "stormglass.jobs" (list $etcd $kubeScheduler) }}\"}`,
		`x{STORMGLASS_CLUSTER=~"$cluster"}`:                              `x{{ "{" }}{{ $clusterLabel }}=~"$cluster"}`,
		`by (STORMGLASS_CLUSTER, job)`:                                   `by ({{ $clusterLabel }}, job)`,
	} {
		if got := actions(text); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}
