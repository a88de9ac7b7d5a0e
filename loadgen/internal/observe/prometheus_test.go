package observe_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
	"github.com/stormglass/stormglass/loadgen/result"
)

// requests are sent to our server and to a real Prometheus. A line is a method, a
// path, and the parameters.
const requests = `
GET query query=up&time=END
POST query query=up&time=END
GET query query=up%20==%202&time=END
GET query query=sum%20by%20(job)%20(up)&time=END
GET query query=increase(etcd_server_leader_changes_seen_total[30001ms])&time=END
GET query query=rate(etcd_server_leader_changes_seen_total[1m])&time=END
GET query query=up[10m]&time=END
GET query query=max_over_time(up[10m:10s])&time=END
GET query query=up[10m:20s]&time=END
GET query query=1/0&time=END
GET query query=-1/0&time=END
GET query query=0/0&time=END
GET query query=vector(1e30)&time=END
GET query query=vector(1e-9)&time=END
GET query query=vector(-123.456)&time=END
GET query query="text"&time=END
GET query query=absent(nothing)&time=END
GET query query=topk(1,process_open_fds)&time=END
GET query query=up&time=2027-01-15T08:00:30.5Z
GET query query=sort(up)&time=END&limit=1
GET query query=up&time=END&timeout=5s&lookback_delta=1s
GET query query=rate(up[5m])&time=END
GET query query=up%2Bon()group_left()up&time=END
GET query query=up(&time=END
GET query query=&time=END
GET query query=up&time=tomorrow
GET query query=up&time=END&limit=-1
GET query query=up&time=END&limit=many
GET query query=up&time=END&timeout=soon
GET query query=up&time=END&lookback_delta=soon
GET query_range query=up&start=BEGIN&end=END&step=15
POST query_range query=up&start=BEGIN&end=END&step=15s
GET query_range query=1&start=BEGIN&end=END&step=30
GET query_range query=nothing&start=BEGIN&end=END&step=30
GET query_range query=up[1m]&start=BEGIN&end=END&step=30
GET query_range query=up&start=END&end=BEGIN&step=30
GET query_range query=up&start=BEGIN&end=END&step=0
GET query_range query=up&start=BEGIN&end=END&step=0.001
GET query_range query=up&start=BEGIN&end=END&step=often
GET query_range query=up&end=END&step=30
GET query_range query=up&start=BEGIN&step=30
GET series match[]=up
GET series match[]=up&match[]={job="etcd"}&start=BEGIN&end=END
POST series match[]=up&limit=1
GET series match[]=nothing
GET series match[]={}
GET series match[]=up(
GET series -
GET series match[]=up&start=2&end=1
GET labels -
GET labels match[]=apiserver_request_total
GET labels limit=2
GET labels match[]={x=""}
GET label/job/values -
GET label/job/values match[]=up&match[]=nothing
GET label/__name__/values match[]={job="etcd"}&start=BEGIN&end=END
GET label/nothing/values -
GET label/job/values limit=1
GET label/job/values start=never
GET format_query query=sum(up)by(job)
GET format_query query=sum(
GET query_exemplars query=up&start=BEGIN&end=END
GET query_exemplars query=up(&start=BEGIN&end=END
GET rules -
GET rules type=alert
GET rules type=both
GET alerts -
GET alertmanagers -
GET metadata limit=few
GET metadata limit_per_metric=few
GET metadata limit=0
`

// reply is a response in comparable form.
type reply struct {
	code int
	body any
}

func ask(t *testing.T, base, line, begin, end string) reply {
	t.Helper()
	method, rest, _ := strings.Cut(line, " ")
	path, params, _ := strings.Cut(rest, " ")
	params = strings.NewReplacer("BEGIN", begin, "END", end).Replace(params)
	form := url.Values{}
	if params != "-" {
		for _, p := range strings.Split(params, "&") {
			name, v, _ := strings.Cut(p, "=")
			v, err := url.QueryUnescape(v)
			if err != nil {
				t.Fatal(err)
			}
			form.Add(name, v)
		}
	}
	var resp *http.Response
	var err error
	if method == http.MethodPost {
		resp, err = http.PostForm(base+"/api/v1/"+path, form)
	} else {
		resp, err = http.Get(base + "/api/v1/" + path + "?" + form.Encode())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := reply{code: resp.StatusCode}
	if err := json.NewDecoder(resp.Body).Decode(&r.body); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	sortResults(r.body)
	return r
}

// sortResults sorts the series of a response: storage returns them in its own order.
func sortResults(body any) {
	data, _ := body.(map[string]any)["data"].(map[string]any)
	list, _ := data["result"].([]any)
	if kind := data["resultType"]; kind == "vector" || kind == "matrix" {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
}

// TestLikePrometheus: a real Prometheus server on the same data gives the same responses to the same requests, errors
// included.
func TestLikePrometheus(t *testing.T) {
	lab, at := storm(t)
	begin, end := fmt.Sprint(at.Unix()-60), fmt.Sprint(at.Unix())
	lines := strings.Split(strings.TrimSpace(requests), "\n")
	ours, err := observe.Start(listen(t), observe.Config{Recorder: lab.Recorder()})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]reply{}
	for _, line := range lines {
		got[line] = ask(t, ours.URL(), line, begin, end)
	}
	if err := ours.Close(); err != nil { // before its storage is
		t.Fatal(err)
	}
	lab.Archive()

	data := t.TempDir()
	if err := os.CopyFS(data, os.DirFS(filepath.Join(lab.Dir(), result.TSDBDir))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	theirs := deploytest.StartPrometheus(t, config, data)
	for _, line := range lines {
		if want := ask(t, theirs, line, begin, end); !reflect.DeepEqual(got[line], want) {
			t.Errorf("%s\n ours   %v\n theirs %v", line, got[line], want)
		}
	}
}
