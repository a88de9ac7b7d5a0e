package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

const (
	lost   = "I1125 18:53:34.498047    7150 leaderelection.go:304] \"Failed to renew lease\" lock=\"kube-system/kube-scheduler\"\nE1125 18:53:34.503275    7150 server.go:337] \"Leaderelection lost\"\n"
	marked = `leaderelection_controller.go:410] Lease kube-system/kube-scheduler holder changed from "vm_1" to "vm_2"`
)

// TestHandedOver checks that only the sequence that upstream documents is a handover, not every loss of a lease.
func TestHandedOver(t *testing.T) {
	started := time.Date(2026, 11, 25, 18, 53, 18, 0, time.UTC)
	exit := process.Exit{Code: 1, At: started.Add(16 * time.Second)}
	const kind = control.KindScheduler
	for name, c := range map[string]struct {
		kind string
		exit process.Exit
		log  string
		api  []string
		want bool
	}{
		"as upstream":                             {kind, exit, lost, []string{"I1125 18:53:22.500355    7137 " + marked + "\n"}, true},
		"a controller manager":                    {control.KindControllerManager, exit, `E1125 18:53:34.503275    7150 controllermanager.go:413] "leaderelection lost/stopped"`, []string{"I1125 18:53:22.500355 7137 " + strings.ReplaceAll(marked, "kube-scheduler", "kube-controller-manager")}, true},
		"logs in JSON":                            {kind, exit, `{"ts":1795632814503.2,"msg":"Leaderelection lost"}`, []string{`{"ts":1795632802500.3,"msg":"Lease kube-system/kube-scheduler holder changed from \"vm_1\" to \"vm_2\""}`}, true},
		"by the second API server":                {kind, exit, lost, []string{"", "I1125 18:53:22.500355    7137 " + marked}, true},
		"no API server has marked the lease":      {kind, exit, lost, []string{"I1125 18:53:22.500355    7137 leaderelection_controller.go:370] Created lease kube-system/kube-scheduler for \"vm_1\""}, false},
		"the lease of another kind is marked":     {control.KindControllerManager, exit, strings.ToLower(lost), []string{"I1125 18:53:22.500355    7137 " + marked}, false},
		"it was marked before the process began":  {kind, exit, lost, []string{"I1125 18:53:17.500355    7137 " + marked}, false},
		"it was marked long ago":                  {kind, process.Exit{Code: 1, At: exit.At.Add(time.Hour)}, lost, []string{"I1125 18:53:22.500355    7137 " + marked}, false},
		"a crash while the lease is marked":       {kind, process.Exit{Code: 2, At: exit.At}, "panic: assignment to entry in nil map\n", []string{"I1125 18:53:22.500355    7137 " + marked}, false},
		"a signal while the lease is marked":      {kind, process.Exit{Code: -1, Signal: "SIGKILL", At: exit.At}, lost, []string{"I1125 18:53:22.500355    7137 " + marked}, false},
		"an API server has no lease to hand over": {control.KindAPIServer, exit, lost, []string{"I1125 18:53:22.500355    7137 " + marked}, false},
	} {
		if got := handedOver(c.kind, c.exit, started, c.log, c.api); got != c.want {
			t.Errorf("%s: handedOver = %v, want %v", name, got, c.want)
		}
	}
}

// handingOver returns a plane whose scheduler exits once as if it had lost its lease, when the test calls handOver. The
// log of the API server contains the result of apiServer.
func handingOver(t *testing.T, apiServer func() string) (p *supervised, handOver func()) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go", "said"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p = supervise(t, "cd "+dir+"; if [ ! -e once ]; then : >once; read line <go; echo 'E1125 server.go:337] \"Leaderelection lost\"'; exit 1; fi; "+lasting, lasting)
	const server = "kube-apiserver-0"
	layout := p.plane.Layout
	if err := os.WriteFile(filepath.Join(dir, "line"), []byte(apiServer()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\ncd " + dir + "\ncat line\necho >said\n" + lasting + "\n"
	if err := os.WriteFile(layout.Program(control.KindAPIServer), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.add(topology.Process{Name: server, Kind: control.KindAPIServer}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(filepath.Join(dir, "said")); err != nil {
		t.Fatal(err)
	}
	return p, func() {
		if err := os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// If an API server gives a scheduler's lease to another scheduler, the old holder exits and the supervisor restarts it,
// like the kubelet. The plane keeps running.
func TestHandoverIsStartedAgain(t *testing.T) {
	p, handOver := handingOver(t, func() string { return time.Now().Format("I0102 15:04:05.000000") + " 7137 " + marked })
	handOver()
	exit := p.eventsOf(t, scheduler, control.EventExit, 1)[0]
	if !exit.Handover || exit.Expected || exit.Detail != "exited with code 1 after it handed over its lease" {
		t.Errorf("exit event = %+v, want a handover", exit)
	}
	p.eventsOf(t, scheduler, control.EventStart, 1)
	if err := p.FirstExit(); err != nil {
		t.Error(err)
	}
}

// If a scheduler loses its lease but no API server marked the lease, the scheduler has crashed. The supervisor starts
// it again, and the event quotes its log.
func TestLostLeaseWithoutHandover(t *testing.T) {
	p, handOver := handingOver(t, func() string { return "nothing" })
	handOver()
	if exit := p.eventsOf(t, scheduler, control.EventExit, 1)[0]; exit.Handover || exit.Expected || !strings.HasPrefix(exit.Detail, "exited with code 1; from its log, ") || !strings.HasSuffix(exit.Detail, ":\n  E1125 server.go:337] \"Leaderelection lost\"") {
		t.Errorf("exit event = %+v, want a crash with a quote", exit)
	}
	p.eventsOf(t, scheduler, control.EventStart, 1)
}

// If a scheduler cannot renew its lease because etcd's database is full, the supervisor starts it again. The load may
// have filled the database.
func TestFullDatabaseDoesNotEndThePlane(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	const lost = `echo 'E1128 leaderelection.go:509] "Failed to update lease" err="etcdserver: mvcc: database space exceeded"'; echo 'E1128 "leaderelection lost/stopped"'; exit 1`
	p := supervise(t, "cd "+dir+"; if [ ! -e once ]; then : >once; read line <go; "+lost+"; fi; "+lasting, lasting)
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	exit := p.eventsOf(t, scheduler, control.EventExit, 1)[0]
	if exit.Expected || exit.Handover || exit.Detail != "exited with code 1, because etcd's database is full" {
		t.Errorf("exit event = %+v, want the full database as the reason", exit)
	}
	p.eventsOf(t, scheduler, control.EventStart, 1)
	select {
	case err := <-p.died:
		t.Errorf("the plane has ended: %v", err)
	default:
	}
}

// leftByFullDatabase reports a lost lease only if a full database caused the loss.
func TestLeftByFullDatabase(t *testing.T) {
	const full, lost = "etcdserver: mvcc: database space exceeded\n", "leaderelection lost\n"
	exit := process.Exit{Code: 1}
	for name, c := range map[string]struct {
		kind string
		exit process.Exit
		log  string
		want bool
	}{
		"both":                   {control.KindScheduler, exit, full + lost, true},
		"no full database":       {control.KindScheduler, exit, lost, false},
		"no lost lease":          {control.KindScheduler, exit, full, false},
		"a signal":               {control.KindScheduler, process.Exit{Code: -1, Signal: "SIGKILL"}, full + lost, false},
		"a kind without a lease": {control.KindAPIServer, exit, full + lost, false},
	} {
		if got := leftByFullDatabase(c.kind, c.exit, c.log); got != c.want {
			t.Errorf("%s: leftByFullDatabase = %v, want %v", name, got, c.want)
		}
	}
}
