package realplane

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/loadgen/scrapeconfig"
)

// The compose file's Prometheus, started with its own arguments on its own
// files, scrapes each component of a plane with the plane's keys, and evaluates
// every rule; none of the rules about missing targets has anything to say.
func TestPrometheusWatchesAPlane(t *testing.T) {
	cluster := plane.Cluster()
	var targets []control.ScrapeTarget
	want := map[string]string{} // job by instance
	for _, c := range cluster.Components {
		targets = append(targets, c.Scrape)
		want[c.Scrape.Instance] = c.Scrape.Job
	}
	_, err := scrapeconfig.Write(cluster.Dir, targets, scrapeconfig.Options{})
	must(t, err)
	project, err := deploytest.Compose(t, "STORMGLASS_USER=1000:1000", "STORMGLASS_PLANE="+cluster.Dir)
	must(t, err)
	ask := startPrometheus(t, project.Services["prometheus"])

	var missing string
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, check := range []func(context.Context, promv1.API) (string, error){
			func(ctx context.Context, ask promv1.API) (string, error) { return scraped(ctx, ask, want) },
			evaluated,
			quiet,
		} {
			var err error
			if missing, err = check(ctx, ask); missing != "" || err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("%v; still missing: %s", err, missing)
	}
}

// scraped says what of the targets Prometheus has not scraped yet.
func scraped(ctx context.Context, ask promv1.API, want map[string]string) (string, error) {
	found, err := ask.Targets(ctx)
	if err != nil {
		return "", err
	}
	up := map[string]string{}
	for _, target := range found.Active {
		if target.Health != promv1.HealthGood {
			return fmt.Sprintf("%s: %s %s", target.ScrapeURL, target.Health, target.LastError), nil
		}
		up[string(target.Labels["instance"])] = string(target.Labels["job"])
	}
	if !maps.Equal(up, want) {
		return fmt.Sprintf("targets %v, not %v", up, want), nil
	}
	return "", nil
}

// evaluated says which rule was not evaluated yet. One that cannot be is an
// error.
func evaluated(ctx context.Context, ask promv1.API) (string, error) {
	loaded, err := alerts.Load()
	if err != nil {
		return "", err
	}
	want := map[string]int{} // rules by group
	for _, f := range loaded {
		for _, g := range f.Groups {
			want[g.Name] = len(g.Rules)
		}
	}
	found, err := ask.Rules(ctx, nil)
	if err != nil {
		return "", err
	}
	got := map[string]int{}
	for _, g := range found.Groups {
		got[g.Name] = len(g.Rules)
		for _, r := range g.Rules {
			name, health, why := "", promv1.RuleHealth(""), ""
			switch r := r.(type) {
			case promv1.AlertingRule:
				name, health, why = r.Name, r.Health, r.LastError
			case promv1.RecordingRule:
				name, health, why = r.Name, r.Health, r.LastError
			}
			switch health {
			case promv1.RuleHealthGood:
			case promv1.RuleHealthUnknown:
				return name + " was not evaluated", nil
			default:
				return "", fmt.Errorf("%s: %s %s", name, health, why)
			}
		}
	}
	if !maps.Equal(got, want) {
		return "", fmt.Errorf("groups of rules: %v, want %v", got, want)
	}
	return "", nil
}

// quiet says which alert about missing targets or metrics there is. At first
// all are missing.
func quiet(ctx context.Context, ask promv1.API) (string, error) {
	now, _, err := ask.Query(ctx, `ALERTS{alertname=~"TargetDown|TargetAbsent|MetricsMissing"}`, time.Time{})
	if err != nil {
		return "", err
	}
	if v := now.(model.Vector); len(v) > 0 {
		return v.String(), nil
	}
	return "", nil
}

var listening = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// startPrometheus starts the service as its container would, but for the port
// and for where the container's files are, and gives a client of it. The end
// of the test ends it, and expects it to end well.
func startPrometheus(t *testing.T, service deploytest.Service) promv1.API {
	t.Helper()
	container := service.Container(t)
	var args []string
	for _, arg := range service.Command {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--config.file", "--storage.tsdb.path":
			arg = name + "=" + filepath.Join(container, filepath.FromSlash(value))
		case "--web.listen-address":
			arg = name + "=127.0.0.1:0"
		}
		args = append(args, arg)
	}
	cmd := exec.Command(deploytest.Tool(t, deploytest.Prometheus), args...)
	logs, stderr := io.Pipe()
	cmd.Stderr = stderr
	must(t, cmd.Start())

	var said strings.Builder
	address := make(chan string, 1)
	var reader sync.WaitGroup
	reader.Go(func() {
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			fmt.Fprintln(&said, lines.Text())
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
		_, _ = io.Copy(io.Discard, logs)
		close(address)
	})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		_ = stderr.Close()
		reader.Wait()
		if err != nil {
			t.Errorf("Prometheus did not end well: %v", err)
		}
		if t.Failed() {
			t.Logf("Prometheus said:\n%s", said.String())
		}
	})

	select {
	case at, ok := <-address:
		if !ok {
			t.Fatal("Prometheus ended")
		}
		base := "http://" + at
		must(t, wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			return ready(base)
		}))
		client, err := api.NewClient(api.Config{Address: base})
		must(t, err)
		return promv1.NewAPI(client)
	case <-time.After(time.Minute):
		t.Fatal("Prometheus does not listen")
		return nil
	}
}

// ready tells whether Prometheus has read its configuration: it listens before
// that.
func ready(base string) (bool, error) {
	answer, err := http.Get(base + "/-/ready")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK, nil
}
