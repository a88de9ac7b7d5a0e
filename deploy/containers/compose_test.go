//go:build compose

package containers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/imagearchive"
	"github.com/stormglass/stormglass/internal/planetest"
)

// Flags that `make test-compose` sets.
var (
	programs = flag.String("programs", "", "`directory` that keeps built programs (default: a temporary one)")
	engine   = flag.String("engine", "", "container `engine`: podman or containerd (default: the first that is installed)")
)

const (
	prometheusURL   = "http://127.0.0.1:9090"
	alertmanagerURL = "http://127.0.0.1:9093"
	// killed is the component that the test kills. alert is the alert that then fires; it has `for: 30s` and is
	// evaluated every 15 s.
	killed = "kube-scheduler-0"
	alert  = "TargetDown"
	// within is the time limit for each step. It is long enough for a busy machine.
	within = 5 * time.Minute
)

// built returns the services whose images the test builds from Go modules.
func built() []string { return []string{"alertmanager", "prometheus"} }

// Prometheus and Alertmanager run in containers as the compose file describes them, and watch a plane that
// `controlplane up --observe` runs. The test kills a component. The alert fires and arrives in Alertmanager, and it
// ends when the component is back. Nothing is left afterwards.
func TestComposeServices(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, u := range []string{prometheusURL, alertmanagerURL} { // otherwise the test would judge the responses of other servers
		mustBeFree(t, u)
	}
	plane := startPlane(t)
	project, err := deploytest.Compose(t, "STORMGLASS_PLANE="+plane.cluster.Dir, "STORMGLASS_USER="+owner())
	must(t, err)
	services := slices.Sorted(maps.Keys(project.Services))
	if !slices.Equal(services, []string{"alertmanager", "grafana", "prometheus"}) {
		t.Fatalf("services: %v", services)
	}
	t.Log("not run: grafana. No Go module builds Grafana, and there is no registry to take its image from")

	images := map[string]imagearchive.Image{}
	for _, name := range built() {
		images[name] = build(t, ctx, project.Services[name].Image)
	}
	store := filepath.Join(t.TempDir(), "store")
	e, err := Open(ctx, *engine, store)
	must(t, err)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(store); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the engine's store is left: %v", err)
		}
		mustBeFree(t, prometheusURL)
		mustBeFree(t, alertmanagerURL)
	})
	var running []*Container
	for _, name := range built() {
		c, err := e.Start(ctx, name, project.Services[name], images[name])
		must(t, err)
		running = append(running, c)
	}
	w := watcher{ctx, running}

	began := time.Now()
	w.until(t, "Prometheus runs the built image", w.runs(images["prometheus"].Name))
	w.until(t, "Alertmanager runs the built image", w.runs(images["alertmanager"].Name))
	w.until(t, "Prometheus scrapes each component", w.scrapes(plane.cluster))
	w.until(t, "Prometheus has found Alertmanager", w.connected)
	w.until(t, "no target is down", w.alerts(alert, ""))
	t.Logf("containers: every component of the plane is scraped, %.0f s after their start", time.Since(began).Seconds())

	plane.run(t, "fault", "kill", "--component", killed)
	began = time.Now()
	w.until(t, alert+" of "+killed+" is in Alertmanager", w.alerts(alert, killed))
	t.Logf("%s of %s is firing in Alertmanager, %.0f s after the kill", alert, killed, time.Since(began).Seconds())

	plane.run(t, "fault", "clear")
	began = time.Now()
	w.until(t, alert+" has ended", w.alerts(alert, ""))
	t.Logf("it has ended, %.0f s after the component was started again", time.Since(began).Seconds())
	for _, c := range slices.Backward(running) {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// owner returns the user of the containers: the user who started the plane. In a rootless engine, root stands for this
// user.
func owner() string {
	if os.Getuid() != 0 {
		return "0:0"
	}
	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustBeFree fails the test if a server listens at the address of a URL.
func mustBeFree(t *testing.T, at string) {
	t.Helper()
	l, err := net.Listen("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatalf("something listens there: %v", err)
	}
	must(t, l.Close())
}

// build builds the image of a service.
func build(t *testing.T, ctx context.Context, image string) imagearchive.Image {
	t.Helper()
	dir := *programs
	if dir == "" {
		dir = t.TempDir()
	}
	dir, err := filepath.Abs(dir)
	must(t, err)
	must(t, os.MkdirAll(dir, 0o755))
	began := time.Now()
	made, err := Build(ctx, filepath.Join(deploytest.Root(t), "tools"), dir, image)
	must(t, err)
	m, err := ModuleOf(image)
	must(t, err)
	t.Logf("%s: %s@%s, built in %.0f s", image, m.Path, m.Version, time.Since(began).Seconds())
	return made
}

// observedPlane is a plane with the files that Prometheus needs to scrape it.
type observedPlane struct {
	binary  string
	cluster control.Cluster
}

// startPlane starts `controlplane up --observe`. The plane ends with this process at the latest. At the end of the
// test, startPlane stops it and fails the test if it reports an error.
func startPlane(t *testing.T) observedPlane {
	t.Helper()
	binary, err := planetest.Build(t.TempDir())
	must(t, err)
	loadgen, err := planetest.Loadgen(t.TempDir())
	must(t, err)
	up := exec.Command(binary, "up", "--dir", filepath.Join(planetest.Dir(t), "plane"), "--observe", "--loadgen", loadgen, "--output", "json")
	var messages bytes.Buffer
	up.Stderr = &messages
	up.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // only this process handles Ctrl-C
	stdout, err := up.StdoutPipe()
	must(t, err)
	alive, err := control.StartAttended(up)
	must(t, err)
	t.Cleanup(func() {
		_ = up.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := up.Wait(); err != nil {
			t.Errorf("the plane: %v\n%s", err, &messages)
		}
		alive.Close()
	})
	p := observedPlane{binary: binary}
	if err := json.NewDecoder(stdout).Decode(&p.cluster); err != nil {
		t.Fatalf("the plane is not ready: %v", err)
	}
	return p
}

// run runs a controlplane command on the plane.
func (p observedPlane) run(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command(p.binary, append(args, "--dir", p.cluster.Dir)...).CombinedOutput()
	if err != nil {
		t.Fatalf("controlplane %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// watcher sends HTTP requests to the containers.
type watcher struct {
	ctx     context.Context
	running []*Container
}

// condition returns a description of what is still missing, or "".
type condition func() string

// until waits for a condition. It fails the test if a container ends.
func (w watcher) until(t *testing.T, what string, c condition) {
	t.Helper()
	missing := ""
	err := wait.PollUntilContextTimeout(w.ctx, 200*time.Millisecond, within, true, func(context.Context) (bool, error) {
		for _, r := range w.running {
			select {
			case <-r.Done():
				return false, errors.New("a container has ended")
			default:
			}
		}
		missing = c()
		return missing == "", nil
	})
	if err == nil {
		return
	}
	for _, r := range w.running {
		t.Logf("container %s:\n%s", r.name, r.Log())
	}
	t.Fatalf("waiting until %s: %v; still missing: %s", what, err, missing)
}

// get reads a JSON response.
func (w watcher) get(at string, into any) error {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body) // possibly incomplete
		return fmt.Errorf("%s: %s %s", at, resp.Status, text)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// runs is the condition that the running program has the version of the image.
func (w watcher) runs(image string) condition {
	return func() string {
		m, err := ModuleOf(image)
		if err != nil {
			return err.Error()
		}
		var version string
		if m.Program == "prometheus" {
			var answer struct{ Data struct{ Version string } }
			err = w.get(prometheusURL+"/api/v1/status/buildinfo", &answer)
			version = answer.Data.Version
		} else {
			var answer struct {
				VersionInfo struct{ Version string } `json:"versionInfo"`
			}
			err = w.get(alertmanagerURL+"/api/v2/status", &answer)
			version = answer.VersionInfo.Version
		}
		if err != nil {
			return err.Error()
		}
		if version != m.Release {
			return fmt.Sprintf("it says version %q, not %s", version, m.Release)
		}
		return ""
	}
}

// scrapes is the condition that Prometheus scrapes all components of the plane and no other target.
func (w watcher) scrapes(c control.Cluster) condition {
	want := map[string]string{} // job by instance
	for _, component := range c.Components {
		want[component.Scrape.Instance] = component.Scrape.Job
	}
	return func() string {
		var answer struct {
			Data struct {
				ActiveTargets []struct {
					Health, LastError string
					Labels            map[string]string
				}
			}
		}
		if err := w.get(prometheusURL+"/api/v1/targets?state=active", &answer); err != nil {
			return err.Error()
		}
		up := map[string]string{}
		for _, target := range answer.Data.ActiveTargets {
			if target.Health != "up" {
				return fmt.Sprintf("%v is %s: %s", target.Labels, target.Health, target.LastError)
			}
			up[target.Labels["instance"]] = target.Labels["job"]
		}
		if !maps.Equal(up, want) {
			return fmt.Sprintf("targets %v, not %v", up, want)
		}
		return ""
	}
}

// connected is the condition that Prometheus sends alerts only to the Alertmanager of the compose file.
func (w watcher) connected() string {
	var answer struct {
		Data struct{ ActiveAlertmanagers []struct{ URL string } }
	}
	if err := w.get(prometheusURL+"/api/v1/alertmanagers", &answer); err != nil {
		return err.Error()
	}
	if all := answer.Data.ActiveAlertmanagers; len(all) != 1 || !strings.HasPrefix(all[0].URL, alertmanagerURL+"/") {
		return fmt.Sprintf("it knows %v", all)
	}
	return ""
}

// alerts is the condition that, in Alertmanager, the alert is active for this instance only, with annotations. If
// instance is empty, the alert must not be active.
func (w watcher) alerts(name, instance string) condition {
	var want []string
	if instance != "" {
		want = []string{instance}
	}
	return func() string {
		var answer []struct {
			Labels, Annotations map[string]string
			Status              struct{ State string }
		}
		if err := w.get(alertmanagerURL+"/api/v2/alerts?filter="+url.QueryEscape(`alertname="`+name+`"`), &answer); err != nil {
			return err.Error()
		}
		var got []string
		for _, a := range answer {
			if a.Status.State != "active" || !strings.Contains(a.Annotations["summary"], a.Labels["instance"]) {
				return fmt.Sprintf("alert %v is %s: %v", a.Labels, a.Status.State, a.Annotations)
			}
			got = append(got, a.Labels["instance"])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Sprintf("active for %v, not %v", got, want)
		}
		return ""
	}
}
