package controlplane_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/planetest"
)

func TestUpObserveRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--observe=0.0.0.0:9090"}, 2, "controlplane: --observe: 0.0.0.0:9090 is open to the network"},
		{[]string{"--observe=9090", "--detach"}, 2, `controlplane: --observe: "9090" is not an address to listen on`},
		{[]string{"--observe-public"}, 2, "have no effect without --observe (add --observe=ADDR)"},
		{[]string{"--observe", "--loadgen", "/nowhere/loadgen"}, 4, "controlplane: --loadgen /nowhere/loadgen: no such file or directory (`make build`"},
	} {
		stdout, stderr, code := run(t, append([]string{"up", "--dir", dir}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("up %v: exit %d, want %d and %q:\n%s%s", c.args, code, c.code, c.want, stdout, stderr)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the refused start left a directory behind: %v", err)
	}
}

// TestUpObserve checks that an observer scrapes the plane and evaluates the alerts as long as the plane's supervisor
// runs, and no longer.
func TestUpObserve(t *testing.T) {
	binary, err := planetest.Loadgen(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(planetest.Dir(t), "plane")
	t.Cleanup(func() { run(t, "down", "--dir", dir) })
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, stderr, code := run(t, "up", "--detach", "--dir", dir, "--loadgen", binary, "--observe="+taken.Addr().String())
	taken.Close()
	if code != 4 || !strings.Contains(stderr, "--observe: listen tcp "+taken.Addr().String()+": bind: address already in use (use port 0 for a free port)") || strings.Contains(stderr, "ready after") {
		t.Errorf("address in use: exit %d, want 4\n%s", code, stderr)
	}
	if up, err := control.InUse(dir); err != nil || up {
		t.Errorf("a plane runs although its observer could not start: %v", err)
	}

	var c control.Cluster
	if err := json.Unmarshal([]byte(ok(t, "up", "--detach", "--dir", dir, "--output", "json", "--loadgen", binary, "--observe")), &c); err != nil {
		t.Fatal(err)
	}
	// count returns the number of series of an expression, or -1 if the observer does not respond.
	count := func(expr string) int {
		resp, err := http.Get(c.Observe + "/api/v1/query?query=" + url.QueryEscape(expr))
		if err != nil {
			return -1
		}
		defer resp.Body.Close()
		var body struct {
			Data struct{ Result []any }
		}
		if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		return len(body.Data.Result)
	}
	eventually(t, 30*time.Second, "all components are scraped", func() bool { return count("up == 1") == len(c.Components) })
	eventually(t, 60*time.Second, "the rules are evaluated", func() bool { return count("instance:process_open_fds:limit_ratio") == len(c.Components) })
	if stored, err := control.Load(dir); err != nil || stored.Observe != c.Observe {
		t.Errorf("cluster.json contains the observer's URL %q, want %q (%v)", stored.Observe, c.Observe, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "prometheus", "prometheus.yml")); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(c.SupervisorPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 60*time.Second, "the observer is gone too", func() bool { return count("up") == -1 })
}
