package cli

import (
	"bytes"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
)

func TestSignalCount(t *testing.T) {
	s := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	for name, c := range map[string]struct {
		impatient bool
		at        []time.Duration
		want      []int
	}{
		"Ctrl-C, told twice":              {at: []time.Duration{0, s(0.01)}, want: []int{endInOrder, nothing}},
		"a CI: SIGINT, SIGTERM 1 s later": {at: []time.Duration{0, s(1)}, want: []int{endInOrder, hurryUp}},
		"a CI that sends more of them":    {at: []time.Duration{0, s(1), s(1.1), s(3), s(5.5)}, want: []int{endInOrder, hurryUp, nothing, nothing, nothing}},
		"a person hammers on Ctrl-C":      {at: []time.Duration{0, s(0.2), s(0.4), s(0.6), s(0.8)}, want: []int{endInOrder, nothing, nothing, hurryUp, nothing}},
		"the report hangs":                {at: []time.Duration{0, s(1), s(6.5)}, want: []int{endInOrder, hurryUp, endAtOnce}},
		"a command that has no report":    {impatient: true, at: []time.Duration{0, s(1)}, want: []int{endInOrder, endAtOnce}},
	} {
		var count signalCount
		var got []int
		for _, at := range c.at {
			got = append(got, count.next(time.UnixMilli(1_800_000_000_000).Add(at), !c.impatient))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// The first SIGTERM ends a command that waits for its input, for a reader of its output, or for clients.
func TestFirstSignalEndsCommands(t *testing.T) {
	run := archivetest.SoundRun(t)
	for command, want := range map[string]int{
		"validate -": exitcode.NoData, "run -": exitcode.NoData, "record audit - --out OUT": exitcode.NoData, "schema": exitcode.NoData, "serve RUN": exitcode.Pass,
	} {
		t.Run(command, func(t *testing.T) {
			p := newLoadgen(t, strings.Fields(strings.NewReplacer("RUN", run, "OUT", filepath.Join(t.TempDir(), "x.recording")).Replace(command))...)
			stdin, err := p.cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := p.cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			p.start()
			if strings.Contains(command, " -") { // the command runs if it has read what does not fit into the pipe
				_, err = stdin.Write(bytes.Repeat([]byte("# nothing\n"), 200_000))
			} else { // the schema does not fit into the pipe
				_, err = stdout.Read(make([]byte, 1))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.wantExit(want)
		})
	}
}

// The first SIGTERM ends a command that waits for a server which accepts connections and never answers.
func TestFirstSignalEndsClients(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewTLSServer(nil)
	server.Close()
	for name, data := range map[string][]byte{
		"token": []byte("0123"), "ca.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		"k.yaml": []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://other'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]int{
		"run rollout-demo --kubeconfig k.yaml --server https://ADDRESS --yes --out out": exitcode.NoData,
		"run api-mix --kubeconfig k.yaml --server https://ADDRESS --dry-run":            exitcode.NoData,
		"nodes --count 1 --kubeconfig k.yaml --server https://ADDRESS --yes":            exitcode.Pass,
		"cleanup --kubeconfig k.yaml --server https://ADDRESS --yes":                    exitcode.NoData,
		"cleanup --expired --kubeconfig k.yaml --server https://ADDRESS --yes":          exitcode.NoData,
		"record cluster --kubeconfig k.yaml --server https://ADDRESS --out x.recording": exitcode.NoData,
		"worker --coordinator ADDRESS --ca ca.pem --token token --index 0":              exitcode.NoData,
		"diagnose --prometheus http://ADDRESS --period 10:00:00,10:05:00":               exitcode.NoData,
	} {
		t.Run(command, func(t *testing.T) {
			silent, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			p := newLoadgen(t, strings.Fields(strings.ReplaceAll(command, "ADDRESS", silent.Addr().String()))...)
			p.cmd.Dir = dir
			p.start()
			asking, err := silent.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer asking.Close()
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.wantExit(want)
		})
	}
}

// The first SIGTERM also ends kubectl and the processes that it started.
func TestFirstSignalEndsKubectl(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{
		"s.yaml": strings.ReplaceAll(withTemplate, "FILE", "overlay"), "overlay/kustomization.yaml": "",
		"bin/kubectl": "#!/bin/sh\necho started > " + at("started") + "\ncat " + at("silent") + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"started", "silent"} {
		if err := syscall.Mkfifo(at(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	started, err := os.OpenFile(at("started"), os.O_RDWR, 0) // for reading alone, it would wait for kubectl
	if err != nil {
		t.Fatal(err)
	}
	defer started.Close()
	p := newLoadgen(t, "validate", at("s.yaml"))
	p.cmd.Env = append(os.Environ(), "PATH="+at("bin")+":/usr/bin:/bin")
	p.start()
	if _, err := started.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.wantExit(exitcode.NoData)
	awaitNoProcess(t, dir)
}
