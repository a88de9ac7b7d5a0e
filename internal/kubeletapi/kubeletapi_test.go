package kubeletapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// one is a node with one pod. The log of the pod has ten lines of ten bytes.
type one struct{}

func (one) Name() string                 { return "n" }
func (one) Unreachable() <-chan struct{} { return nil }

func (one) Pods() []*corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}}
	p.Spec.Containers = []corev1.Container{{Name: "c"}}
	return []*corev1.Pod{p}
}

func (one) Summary(now time.Time) *stats.Summary {
	used := uint64(2_500_000_000)
	cpu := &stats.CPUStats{Time: metav1.NewTime(now), UsageCoreNanoSeconds: &used}
	c := stats.ContainerStats{Name: "c", StartTime: metav1.NewTime(now), CPU: cpu}
	return &stats.Summary{Pods: []stats.PodStats{{PodRef: stats.PodReference{Name: "web", Namespace: "ns"}, CPU: cpu, Containers: []stats.ContainerStats{c}}}}
}

func (one) Log(_ context.Context, _ *corev1.Pod, _ string, _ *corev1.PodLogOptions, w io.Writer) error {
	_, err := w.Write(bytes.Repeat([]byte("123456789\n"), 10))
	return err
}

func get(t *testing.T, h handler, path string, values map[string]string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for k, v := range values {
		r.SetPathValue(k, v)
	}
	w := httptest.NewRecorder()
	h(w, r, one{})
	return w.Code, w.Body.String()
}

func TestLogs(t *testing.T) {
	web := map[string]string{"namespace": "ns", "pod": "web", "container": "c"}
	for query, want := range map[string]struct {
		code int
		body string
	}{
		"":                    {200, strings.Repeat("123456789\n", 10)},
		"limitBytes=15":       {200, "123456789\n12345"},
		"limitBytes=0":        {422, `{"message": "Invalid request: limitBytes=0: must be at least 1"}`},
		"tailLines=-1":        {422, `{"message": "Invalid request: tailLines=-1: must be at least 0"}`},
		"follow=perhaps":      {400, "Unable to decode query: follow=perhaps"},
		"sinceTime=yesterday": {400, "yesterday"},
		"stream=Stderr":       {200, ""},
		"stream=Stdin":        {422, "stream=Stdin: All, Stdout or Stderr"},
		"sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z": {422, "at most one of sinceTime or sinceSeconds"},
	} {
		if code, body := get(t, serveLog, "/?"+query, web); code != want.code || !strings.Contains(body, strings.TrimSuffix(want.body, "\n")) {
			t.Errorf("%q: %d %s", query, code, body)
		}
	}
	for of, want := range map[string]map[string]string{
		`pod "api" does not exist`:             {"namespace": "ns", "pod": "api", "container": "c"},
		`container "d" not found in pod "web"`: {"namespace": "ns", "pod": "web", "container": "d"},
	} {
		if code, body := get(t, serveLog, "/", want); code != 404 || !strings.Contains(body, of) {
			t.Errorf("%v: %d %s", want, code, body)
		}
	}
	o, refused := logOptions(url.Values{"follow": {"true"}, "tail": {"3"}, "timestamps": {"true"}})
	if refused != nil || !o.Follow || *o.TailLines != 3 || !o.Timestamps {
		t.Errorf("%+v, %v", o, refused)
	}
}

func TestResources(t *testing.T) {
	_, body := get(t, serveResources, "/metrics/resource", nil)
	for _, want := range []string{
		`container_cpu_usage_seconds_total{container="c",namespace="ns",pod="web"} 2.5 `,
		`pod_cpu_usage_seconds_total{namespace="ns",pod="web"} 2.5 `, "resource_scrape_error 0",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
}

func TestSubresources(t *testing.T) {
	for path, want := range map[string][]string{
		"/pods": {"pods", "proxy"}, "/runningpods/": {"pods", "proxy"}, "/healthz/ping": {"healthz", "proxy"}, "/configz": {"configz", "proxy"},
		"/stats/summary": {"stats"}, "/metrics/resource": {"metrics"}, "/logs/x": {"log"}, "/exec/ns/web/c": {"proxy"}, "/containerLogs/ns/web/c": {"proxy"},
	} {
		if got := subresources(path); !slices.Equal(got, want) {
			t.Errorf("%s: %v", path, got)
		}
	}
}
