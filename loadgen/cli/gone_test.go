package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/result"
)

// wire forwards TCP connections to the shared plane, and can be cut.
type wire struct {
	t    *testing.T
	to   string
	addr string

	mu       sync.Mutex
	listener net.Listener
	whole    bool // connections may be opened
	conns    []net.Conn
}

// newWire returns a wire and a kubeconfig whose server is the wire.
func newWire(t *testing.T) (*wire, string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(plane.Cluster().Kubeconfigs["admin"])
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, addr: "127.0.0.1:0"}
	w.mend()
	for _, c := range config.Clusters {
		server, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		w.to, c.Server = server.Host, "https://"+w.addr
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.cut)
	return w, file
}

// mend accepts connections again, at the same address.
func (w *wire) mend() {
	w.t.Helper()
	listener, err := net.Listen("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.addr, w.listener = listener.Addr().String(), listener
	w.mu.Lock()
	w.whole = true
	w.mu.Unlock()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", w.to)
			if err != nil {
				near.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, near, far)
			if !w.whole { // it was cut meanwhile
				near.Close()
				far.Close()
			}
			w.mu.Unlock()
			join := func(a, b net.Conn) {
				_, _ = io.Copy(a, b)
				a.Close()
				b.Close()
			}
			go join(near, far)
			go join(far, near)
		}
	}()
}

// cut ends all connections and refuses new ones.
func (w *wire) cut() {
	w.listener.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = false
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// lostRun starts a run against the shared plane and cuts its wire. more are further arguments of the run.
func lostRun(t *testing.T, more ...string) (w *wire, p *loadgenProcess, dir string) {
	t.Helper()
	w, kubeconfig := newWire(t)
	dir = filepath.Join(planetest.Dir(t), "run")
	p = startLoadgen(t, append([]string{"run", "testdata/short.yaml", "--out", dir, "--kubeconfig", kubeconfig, "--yes", "--set", "phases.only.for=10m"}, more...)...)
	p.awaitLine("phase only")
	w.cut()
	return w, p, dir
}

// If the cluster becomes unreachable, the run ends long before the end of its phase and reports this as the reason. When the
// cluster is back, it is cleaned up.
func TestLostClusterEndsRun(t *testing.T) {
	useSharedPlane(t)
	w, p, dir := lostRun(t)
	p.awaitLine("failed: cluster stormglass (https://" + w.addr + ") can no longer be reached: connection refused since ")
	p.awaitLine("some objects could not be removed yet: the cluster cannot be reached: connection refused")
	w.mend()
	p.wantExit(4)
	wantFiles(t, dir)
	if r := readResult(t, dir); !strings.HasPrefix(r.Reasons[0], "the environment failed: cluster stormglass (") || r.Run.Left != "" {
		t.Errorf("reasons %q, left %q", r.Reasons, r.Run.Left)
	}
	wantNothingLeft(t, plane.Cluster().Kubeconfigs["admin"])
}

// If the cluster stays away, the run ends by itself. The live page says that it has failed, the report gives the loss as
// the reason, and the printed command removes the objects later.
func TestClusterThatStaysAwayEndsRun(t *testing.T) {
	useSharedPlane(t)
	w, p, dir := lostRun(t, "--web")
	_, url, found := strings.Cut(strings.Join(p.said, " "), "live page at ")
	if url, _, _ = strings.Cut(url, " "); !found {
		t.Fatalf("the output has no live page:\n%s", strings.Join(p.said, "\n"))
	}
	answer, err := http.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var last struct {
		Word, Phase string
		Final       bool
	}
	for events := bufio.NewScanner(answer.Body); !last.Final && events.Scan(); {
		if text, ok := strings.CutPrefix(events.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(text), &last); err != nil {
				t.Fatal(err)
			}
		}
	}
	if last.Word != "FAILED" || last.Phase != "" || !last.Final {
		t.Errorf("the last state of the page is %+v", last)
	}
	if report, err := http.Get(url); err == nil { // the run waits some seconds for this request
		report.Body.Close()
	}
	p.wantExit(4)
	r := readResult(t, dir)
	want := "the environment failed: cluster stormglass (https://" + w.addr + ") can no longer be reached: connection refused since "
	if !strings.HasPrefix(r.Reasons[0], want) {
		t.Errorf("the first reason is %q, want %q", r.Reasons[0], want)
	}
	w.mend()
	removeLeft(t, r.Run.Left)
}

// The second signal skips the clean-up: the report is written, and the last line
// names the remaining objects and the command that removes them.
func TestSecondSignalStillWritesReport(t *testing.T) {
	useSharedPlane(t)
	w, p, dir := lostRun(t)
	p.awaitLine("some objects could not be removed yet")
	p.signalUntil(syscall.SIGINT, "interrupted: shutting down cleanly and removing")
	p.signalUntil(syscall.SIGTERM, "second signal: ")
	p.wantExit(4)
	wantFiles(t, dir)
	left := readResult(t, dir).Run.Left
	if last := p.said[len(p.said)-1]; last != "loadgen: "+left || !strings.Contains(last, "connection refused") {
		t.Errorf("last line:\n%s\nwant the remaining objects:\n%s", last, left)
	}
	w.mend()
	removeLeft(t, left)
}

// removeLeft removes the objects and the lock that a run left on the shared plane, by the command in the run's last line.
func removeLeft(t *testing.T, left string) {
	t.Helper()
	_, command, _ := strings.Cut(left, "`loadgen ")
	command, _, _ = strings.Cut(command, "`")
	startLoadgen(t, append(strings.Fields(command), "--yes")...).wantExit(0)
	wantNothingLeft(t, plane.Cluster().Kubeconfigs["admin"])
}

// If a CI sends SIGINT and SIGTERM, the report is written and no keys are left.
func TestTwoSignalsOnABundledPlane(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(planetest.Dir(t), "run")
	p := startRun(t, "testdata/short.yaml", "--out", dir, "--set", "phases.only.for=10m")
	p.awaitLine("phase only")
	p.signalUntil(syscall.SIGINT, "interrupted: shutting down cleanly; a second signal skips all waiting")
	p.signalUntil(syscall.SIGTERM, "second signal: ")
	p.wantExit(3)
	awaitNoProcess(t, dir)
	wantFiles(t, dir)
	for _, keys := range []string{"pki", "kubeconfigs"} {
		if _, err := os.Stat(filepath.Join(dir, "controlplane", keys)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", keys, err)
		}
	}
	if r := readResult(t, dir); !r.Run.Interrupted || r.Verdict == result.Pass {
		t.Errorf("interrupted %v, verdict %q", r.Run.Interrupted, r.Verdict)
	}
}

// signalUntil sends a signal again and again until a line with the given words is
// printed: two within half a second are one.
func (p *loadgenProcess) signalUntil(sig syscall.Signal, words string) {
	p.t.Helper()
	printed := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			_ = p.cmd.Process.Signal(sig) // an error means that the process has ended; then the line is never printed
			select {
			case <-tick.C:
			case <-printed:
				return
			}
		}
	})
	p.awaitLine(words)
	close(printed)
	sending.Wait()
}
