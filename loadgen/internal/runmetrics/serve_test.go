package runmetrics_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
	"github.com/stormglass/stormglass/loadgen/result"
)

// serve serves runs until the test ends.
func serve(t *testing.T, dirs ...string) (url string, runs []runmetrics.Served) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	type ready struct {
		url  string
		runs []runmetrics.Served
	}
	up, down := make(chan ready, 1), make(chan error, 1)
	go func() {
		down <- runmetrics.Serve(ctx, runmetrics.ServeOptions{Dirs: dirs, Addr: "127.0.0.1:0", Version: "test", Ready: func(url string, runs []runmetrics.Served) { up <- ready{url, runs} }})
	}()
	select {
	case r := <-up:
		t.Cleanup(func() {
			cancel()
			if err := <-down; err != nil {
				t.Error(err)
			}
		})
		return r.url, r.runs
	case err := <-down:
		cancel()
		t.Fatal(err)
		return "", nil
	}
}

// Runs are served together, each under its name, with the results of the rules. Their
// directories are not changed.
func TestServe(t *testing.T) {
	one := archivetest.CopyDir(t, storm(t))
	under := filepath.Join(t.TempDir(), "other")
	if err := os.CopyFS(under, os.DirFS(archivetest.SoundRun(t))); err != nil {
		t.Fatal(err)
	}
	unchanged(t, one)
	unchanged(t, under)
	url, runs := serve(t, one, under)
	if len(runs) != 2 || runs[1].Name != "other" || runs[0].Name == "other" {
		t.Fatalf("%+v", runs)
	}
	end, promtool := runs[0].End.Format(time.RFC3339Nano), deploytest.Tool(t, deploytest.Promtool)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"query", "instant", "--time", end, url, `up{job="etcd", run="` + runs[0].Name + `"}`}, `run="` + runs[0].Name + `"} => 1`},
		{[]string{"query", "instant", "--time", end, url, `ALERTS{alertname="EtcdWALFsyncSlow", alertstate="firing"}`}, `run="` + runs[0].Name + `"`},
		{[]string{"query", "instant", "--time", runs[1].End.Format(time.RFC3339Nano), url, `count by (run) (up)`}, `{run="other"} => 2`},
		{[]string{"query", "labels", "--start", runs[0].Start.Format(time.RFC3339), "--end", end, url, "run"}, "other"},
		{[]string{"query", "labels", "--start", runs[0].Start.Format(time.RFC3339), "--end", end, url, "alertname"}, "EtcdWALFsyncSlow"},
		{[]string{"check", "ready", "--url", url}, "Prometheus Server is Ready"},
	} {
		out, err := deploytest.Run(t, ".", promtool, c.args...)
		if err != nil || !strings.Contains(out, c.want) {
			t.Errorf("promtool %s: %v\n%s\nwant %s", strings.Join(c.args, " "), err, out, c.want)
		}
	}
}

// Runs in directories with the same name are distinguished by more of their paths.
func TestServedNames(t *testing.T) {
	base, run := t.TempDir(), archivetest.SoundRun(t)
	var dirs []string
	for _, name := range []string{"a/run", "b/run", "b/other"} {
		dir := filepath.Join(base, name)
		if err := os.CopyFS(dir, os.DirFS(run)); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	_, runs := serve(t, dirs...)
	for i, want := range []string{"a/run", "b/run", "other"} {
		if runs[i].Name != want {
			t.Errorf("%s is served as %q, want %q", dirs[i], runs[i].Name, want)
		}
	}
	refused := func(o runmetrics.ServeOptions, code int, want string) {
		t.Helper()
		o.Ready = func(string, []runmetrics.Served) { t.Error("Serve accepts invalid options") }
		err := runmetrics.Serve(t.Context(), o)
		if got := exitcode.Of(err); got != code || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("exit %d, want %d and %q: %v", got, code, want, err)
		}
	}
	refused(runmetrics.ServeOptions{Dirs: []string{dirs[0], dirs[0]}, Addr: "127.0.0.1:0"}, exitcode.Usage, "appears twice")
	refused(runmetrics.ServeOptions{Dirs: dirs[:1], Addr: "0.0.0.0:0"}, exitcode.Usage, "--listen")
	refused(runmetrics.ServeOptions{Dirs: []string{dirs[0], base}, Addr: "127.0.0.1:0"}, exitcode.Usage, base)
	if err := os.RemoveAll(filepath.Join(dirs[1], result.TSDBDir)); err != nil {
		t.Fatal(err)
	}
	refused(runmetrics.ServeOptions{Dirs: dirs[:2], Addr: "127.0.0.1:0"}, exitcode.NoData, dirs[1]+": tsdb")
}
