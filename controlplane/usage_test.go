package controlplane_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestMistypedCommandsGetOneLineWithAHint(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	loadgen := filepath.Join(t.TempDir(), "loadgen") // up only checks that this file exists
	if err := os.WriteFile(loadgen, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, other := filepath.Join(t.TempDir(), "no plane"), filepath.Dir(loadgen)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"stat"}, 2, `unknown command "stat" for "controlplane" (did you mean "status"?)`},
		{[]string{"kill"}, 2, `(did you mean "fault kill"?)`},
		{[]string{"fault", "kil", "--for", "3s"}, 2, `unknown command "kil" for "controlplane fault" (did you mean "kill"?)`},
		{[]string{"help", "etcd", "restor"}, 2, `(did you mean "restore"?)`},
		{[]string{"up", "--observe", "127.0.0.1:9090"}, 2, `controlplane up takes no argument "127.0.0.1:9090" (write the address of --observe after =: --observe=127.0.0.1:9090)`},
		{[]string{"up", "--observe=127.0.0.1:90900"}, 2, `--observe: "127.0.0.1:90900" is not an address to listen on`},
		{[]string{"up", "--dir", dir, "--loadgen", loadgen, "--observe=" + taken.Addr().String()}, 4, "--observe: listen tcp " + taken.Addr().String() + ": bind: address already in use (use port 0 for a free port)"},
		{[]string{"up", "--config", ""}, 2, "--config is empty (give it a value, or leave it out)"},
		{[]string{"status", "--dir="}, 2, "--dir is empty"},
		{[]string{"status", "--ouput", "json"}, 2, "unknown flag: --ouput (did you mean --output?)"},
		{[]string{"fault", "webhook", "--timeout", "1.5s"}, 2, `--timeout "1.5s": 1.5s is not a whole number of seconds`},
		{[]string{"etcdctl", "--dir"}, 2, "--dir needs a value (write --dir DIR)"},
		{[]string{"kubectl", "--dir=", "get", "ns"}, 2, "--dir is empty"},
		{[]string{"etcdctl", "get", "--member"}, 2, "--member needs a value (write --member MEMBER)"},
		{[]string{"etcd", "snapshot", "/nowhere/\x1b[2J\u202ex"}, 2, "controlplane: /nowhere/[2Jx: no such file or directory"},
		{[]string{"etcd", "snapshot", "/nowhere/etcd.db"}, 2, "/nowhere/etcd.db: no such file or directory (name a writable file)"},
		{[]string{"etcd", "restore", "/dev/zero"}, 2, "/dev/zero: it is a device or socket, not a regular file (pass a file that `controlplane etcd snapshot` has written)"},
		{[]string{"up", "--dir", loadgen}, 2, loadgen + ": not a directory (choose another --dir)"},
		{[]string{"status", "--dir", loadgen}, 4, loadgen + ": no control plane runs in this directory (this directory does not belong to a control plane; choose another --dir)"},
		{[]string{"kubectl", "--dir", other, "get", "ns"}, 4, other + ": no control plane runs in this directory (this directory does not belong to a control plane; choose another --dir)"},
		{[]string{"status", "--dir", dir}, 4, "(start one with: controlplane up --detach --dir '" + dir + "')"},
	} {
		stdout, stderr, code := run(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("controlplane %s: exit %d, want %d and %q:\n%s%s", strings.Join(c.args, " "), code, c.code, c.want, stdout, stderr)
		}
	}
}

// If a command cannot write its result or its help, it exits with the code for environment errors.
func TestFullDeviceIsReported(t *testing.T) {
	for _, args := range []string{"version", "schema", "--help", "fault --help", "help up", "fault", "--version"} {
		_, stderr, code := limited(t, "exec >/dev/full", strings.Fields(args)...)
		if want := "controlplane: write /dev/stdout: no space left on device\n"; code != 4 || stderr != want {
			t.Errorf("controlplane %s: exit %d, want 4 and %q:\n%s", args, code, want, stderr)
		}
	}
}

// status reads the status of a stopped plane from a file. It prints the file's text without escape sequences.
func TestStatusOfStoppedPlaneIsClean(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, control.StoppedFile), []byte(`{"dir": "/x", "cause": "\u001b[2J\u202eetcd-0 died"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := run(t, "status", "--dir", dir); code != 4 || strings.ContainsAny(stdout+stderr, "\x1b\u202e") || !strings.Contains(stdout, "\n[2Jetcd-0 died\n\nCOMPONENT ") {
		t.Errorf("exit %d, want 4 and no escape sequences:\n%q\n%q", code, stdout, stderr)
	}
}

// If any flag of any command has an empty value, the error is one line that names the flag.
func TestInvalidFlagIsNamed(t *testing.T) {
	flags := regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z-]+) \w+ `) // flags that take a value
	verbs := regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`)
	commands := [][]string{{"up"}, {"down"}, {"status"}, {"etcd", "snapshot", "f"}, {"etcd", "restore", "f"}}
	for _, m := range verbs.FindAllStringSubmatch(ok(t, "fault", "--help"), -1) {
		commands = append(commands, []string{"fault", m[1]})
	}
	if len(commands) < 18 {
		t.Errorf("found only %d commands: %v", len(commands), commands)
	}
	for _, words := range commands {
		for _, m := range flags.FindAllStringSubmatch(ok(t, append(words, "--help")...), -1) {
			_, stderr, code := run(t, append(words, "--"+m[1]+"=")...)
			if code != 2 || !strings.HasPrefix(stderr, "controlplane: --"+m[1]+" ") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%v --%s= printed another error: exit %d\n%s", words, m[1], code, stderr)
			}
		}
	}
}

// The user's environment and flags do not make a tool use another cluster.
func TestToolsUseSelectedPlane(t *testing.T) {
	c := shared.Cluster()
	env := []string{"KUBECONFIG=/nowhere", "ETCDCTL_ENDPOINTS=https://127.0.0.1:1", "ETCDCTL_WRITE_OUT=json"}
	for _, args := range [][]string{
		{"kubectl", "--dir", c.Dir, "get", "namespaces"},
		{"etcdctl", "--dir", c.Dir, "endpoint", "health"},
		{"etcdctl", "--dir", c.Dir, "--endpoints", c.Etcd.Endpoints[0], "endpoint", "health", "-w", "json"},
		{"etcdctl", "--dir", c.Dir, "--endpoints=" + c.Etcd.Endpoints[0], "--cacert=" + c.Etcd.CAFile, "get", "/none"},
		{"etcdctl", "--dir", c.Dir, "endpoint", "health", "--member", "etcd-0"},
	} {
		if stdout, stderr, code := runEnv(t, env, "", args...); code != 0 || strings.Contains(stderr, "shadowed") {
			t.Errorf("%v: exit %d, want 0 without a warning\n%s%s", args, code, stdout, stderr)
		}
	}
	if _, stderr, code := run(t, "etcdctl", "--dir", c.Dir, "--member", "etcd-7", "endpoint", "health"); code != 2 || !strings.Contains(stderr, "--member etcd-7: unknown member (known: etcd-0)") {
		t.Errorf("unknown member: exit %d, want 2: %s", code, stderr)
	}
}

// Help, versions and other commands that call no server work without a plane. They do not use the user's own clusters.
func TestToolsWithoutAPlane(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{}, {"--help"}, {"version", "--client"}, {"get", "--help"}} {
		if stdout, stderr, code := run(t, append([]string{"kubectl", "--dir", dir}, args...)...); code != 0 {
			t.Errorf("kubectl %v: exit %d, want 0\n%s%s", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"version"}, {"get", "--help"}} {
		if stdout, stderr, code := run(t, append([]string{"etcdctl", "--dir", dir}, args...)...); code != 0 {
			t.Errorf("etcdctl %v: exit %d, want 0\n%s%s", args, code, stdout, stderr)
		}
	}
	for _, args := range [][]string{{"version"}, {"config", "set-context", "x"}, {"get", "ns"}} {
		if _, stderr, code := run(t, append([]string{"kubectl", "--dir", dir}, args...)...); code != 4 || !strings.Contains(stderr, "no control plane runs in this directory") {
			t.Errorf("kubectl %v without a plane: exit %d, want 4\n%s", args, code, stderr)
		}
	}
}

// If a component panics, the error quotes the panic, and the component's log stays at the path in the error.
func TestPanicOfComponentIsQuoted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my plane")
	config := "# the lease is shorter than its renewal\ncontrollerManager: {flags: {leader-elect-lease-duration: 5s}}\n"
	for range 2 { // the second run uses the directory that the first has left
		_, stderr, code := runEnv(t, nil, config, "up", "--dir", dir, "--config", "-")
		_, told, _ := strings.Cut(stderr, "\ncontrolplane: ")
		first, rest, _ := strings.Cut(told, "\n")
		log := filepath.Join(dir, "logs", "kube-controller-manager-0.log")
		if code != 4 || !strings.HasSuffix(first, "; from its log, "+log+":") || !strings.HasPrefix(rest, "  panic: leaseDuration must be greater than renewDeadline") {
			t.Errorf("exit %d, want 4 and the quoted panic:\n%s", code, stderr)
		}
		if text, err := os.ReadFile(log); err != nil || !strings.Contains(string(text), "\npanic: leaseDuration") {
			t.Errorf("the log does not contain the panic: %v", err)
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(left) != 2 {
			t.Errorf("entries of the directory = %v, want only the lock and the logs", left)
		}
	}
}

// A config that contains only comments is equivalent to an empty config.
func TestConfigOfCommentsIsEmpty(t *testing.T) {
	for _, config := range []string{"# x\n", "---\n# x\n", "---\n", "\n"} {
		if _, stderr, code := runEnv(t, nil, config, "up", "--dir", "/proc/stormglass/plane", "--config", "-"); code != 2 || !strings.Contains(stderr, "/proc/stormglass/plane: no such file or directory (choose another --dir)") {
			t.Errorf("config %q: exit %d, want 2: %s", config, code, stderr)
		}
	}
}

// The printed command ends the fault from any working directory.
func TestHintsNameThePlane(t *testing.T) {
	c := shared.Cluster()
	stdout := ok(t, "fault", "pause", "--dir", c.Dir, "--component", "kube-scheduler-0", "--for", "5m")
	_, hint, found := strings.Cut(strings.TrimSpace(stdout), "controlplane ")
	if !found || !strings.Contains(hint, "--dir "+c.Dir) {
		t.Fatalf("no command with the plane's directory was printed:\n%s", stdout)
	}
	ok(t, strings.Fields(hint)...)
	client, err := control.Dial(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := client.Status(t.Context()); err != nil || len(status.Faults) > 0 {
		t.Errorf("active faults after the command = %+v, %v; want none", status.Faults, err)
	}
}
