package process_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// roleEnv makes the test binary run as a child or a supervisor.
const roleEnv = "PROCESS_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

func play(role string) int {
	role, arg, _ := strings.Cut(role, ":")
	switch role {
	case "supervisor": // starts one child with the role in arg, and waits forever
		s, err := process.NewSpawner()
		if err != nil {
			return 1
		}
		if _, err := s.Start(spec(arg, filepath.Join(os.Getenv("PROCESS_TEST_DIR"), "log"), os.NewFile(3, "hold"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println("started")
		select {}
	case "pipe-only": // dies only by the pipe, as on a kernel without PDEATHSIG
		if err := clearDeathSignal(); err != nil {
			return 1
		}
		if err := process.DieWithParent(); err != nil {
			return 1
		}
		select {}
	case "signal-only": // dies only by the signal, like a child that hangs before it can watch the pipe
		select {}
	case "limited": // prints its limit of open files after the start of main
		if err := process.LimitDescriptors(); err != nil {
			fmt.Println(err)
			return 1
		}
		soft, hard := limits()
		fmt.Println(soft, hard, os.Getenv("STORMGLASS_DESCRIPTORS"))
	case "copy": // copies the lines of a fifo to its output
		f, err := os.Open(arg)
		if err != nil {
			return 1
		}
		for in := bufio.NewScanner(f); in.Scan(); {
			fmt.Println(in.Text())
		}
	case "deaf":
		ignoreTerm()
		fmt.Println("deaf")
		select {}
	case "fail":
		for i := range 20 {
			fmt.Println("line", i)
		}
		return 7
	}
	return 0
}

func spec(role, log string, hold *os.File) process.Spec {
	return process.Spec{
		Name: role, Path: "/proc/self/exe", Args: []string{"helper"}, Log: log, Hold: hold,
		Env: append(os.Environ(), roleEnv+"="+role),
	}
}

func spawner(t *testing.T) *process.Spawner {
	t.Helper()
	s, err := process.NewSpawner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestNoOrphans kills a supervisor by SIGKILL. Its child must then end, by each of the two mechanisms alone. The child
// holds the write end of a pipe, so end of file on the pipe shows that the child has ended.
func TestNoOrphans(t *testing.T) {
	for _, role := range []string{"pipe-only", "signal-only"} {
		t.Run(role, func(t *testing.T) {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"=supervisor:"+role, "PROCESS_TEST_DIR="+t.TempDir())
			cmd.ExtraFiles = []*os.File{write}
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
				t.Fatalf("the supervisor printed %q: %v", line, err)
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if err := read.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := read.Read(make([]byte, 1)); err != io.EOF {
				t.Fatalf("the child still runs 30 s after its supervisor: %v", err)
			}
		})
	}
}

func TestExitAndLastLines(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := spawner(t).Start(spec("fail", log, nil))
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if got := c.Exit().String(); got != "exited with code 7" {
		t.Errorf("exit = %s, want code 7", got)
	}
	if got := strings.Join(c.LastLines(2), "|"); got != "line 18|line 19" {
		t.Errorf("last lines = %s, want line 18|line 19", got)
	}
	if strings.Contains(c.Output(), "earlier") {
		t.Error("Output contains the output of an earlier start")
	}
}

// A log above the limit is copied and truncated while its process writes to it. Tail reads the process's output from
// both files.
func TestLogsAreRotated(t *testing.T) {
	dir := t.TempDir()
	log, fifo := filepath.Join(dir, "a.log"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(log, []byte("earlier\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := os.OpenFile(fifo, os.O_RDWR, 0) // with O_RDWR, the open does not wait for a reader
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	s := spawner(t)
	c, err := s.Start(spec("copy:"+fifo, log, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		line string
		most int64
		// output is the output of the process after the rotation. files are the contents of the log and its copies.
		output, files string
	}{
		{"one\n", 100, "one\n", "earlier\none\n||"},
		{"two\n", 10, "one\ntwo\n", "|earlier\none\ntwo\n|"},
		{"three\n", 100, "one\ntwo\nthree\n", "three\n|earlier\none\ntwo\n|"},
		{"four\n", 10, "three\nfour\n", "|three\nfour\n|earlier\none\ntwo\n"},
		{"five\n", 1, "five\n", "|five\n|three\nfour\n"},
	} {
		if _, err := to.WriteString(step.line); err != nil {
			t.Fatal(err)
		}
		for tick := time.NewTicker(5 * time.Millisecond); !strings.HasSuffix(c.Output(), step.line); <-tick.C {
		}
		if err := s.RotateLogs(dir, step.most); err != nil {
			t.Fatal(err)
		}
		var files []string
		for _, f := range []string{log, process.RotatedLog(log), log + ".2"} {
			text, err := os.ReadFile(f)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			files = append(files, string(text))
		}
		if output, got := c.Output(), strings.Join(files, "|"); output != step.output || got != step.files {
			t.Errorf("after %q: output %q, want %q; files %q, want %q", step.line, output, step.output, got, step.files)
		}
	}
}

func TestStopKillsChildThatIgnoresSignals(t *testing.T) {
	for name, stop := range map[string]func(*process.Child) process.Exit{
		"when the grace is over": func(c *process.Child) process.Exit { return c.Stop(time.Millisecond, nil) },
		"at once when told": func(c *process.Child) process.Exit {
			now := make(chan struct{})
			close(now)
			return c.Stop(time.Hour, now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			c, err := spawner(t).Start(spec("deaf", log, nil))
			if err != nil {
				t.Fatal(err)
			}
			for tick := time.NewTicker(5 * time.Millisecond); c.Output() == ""; <-tick.C {
			}
			if got := stop(c); got.Signal != "SIGKILL" {
				t.Errorf("exit = %v, want SIGKILL", got)
			}
		})
	}
}

func TestCloseReleasesEverything(t *testing.T) {
	s := spawner(t)
	c, err := s.Start(spec("deaf", filepath.Join(t.TempDir(), "log"), nil))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	select {
	case <-c.Done():
	default:
		t.Error("Close returned while a child still ran")
	}
	if _, err := s.Start(spec("fail", filepath.Join(t.TempDir(), "log"), nil)); err == nil {
		t.Error("a closed Spawner started a child")
	}
}

// TestDescriptors checks that a child has the requested soft limit, although Go raises the limit when a program starts,
// and that the hard limit does not change.
func TestDescriptors(t *testing.T) {
	asked := spec("limited", filepath.Join(t.TempDir(), "log"), nil)
	asked.Descriptors = 321
	c, err := spawner(t).Start(asked)
	if err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	_, hard := limits()
	if got, want := strings.TrimSpace(c.Output()), fmt.Sprintf("321 %d", hard); got != want {
		t.Errorf("limits of the child = %s, want %s", got, want)
	}
}

// TestReserve checks that a component can repeatedly listen on a reserved port, that the kernel assigns the port to no
// other socket, and that a dial is refused while no component listens.
func TestReserve(t *testing.T) {
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := first.Addr().(*net.TCPAddr).Port
	first.Close()
	reserved, err := process.Reserve(port)
	if err != nil {
		t.Fatal(err)
	}
	defer reserved.Close()
	for range 3 {
		if conn, err := net.Dial("tcp", first.Addr().String()); err == nil {
			conn.Close()
			t.Error("a connection to a reserved port succeeded")
		}
		l, err := net.Listen("tcp", first.Addr().String())
		if err != nil {
			t.Fatalf("the component cannot listen on its reserved port: %v", err)
		}
		conn, err := net.Dial("tcp", first.Addr().String())
		if err != nil {
			t.Fatalf("a connection to the component failed: %v", err)
		}
		conn.Close()
		l.Close()
	}
	// An outgoing connection cannot use the port, not even if it requests the port explicitly.
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if conn, err := dialer.Dial("tcp", l.Addr().String()); err == nil {
		conn.Close()
		t.Error("an outgoing connection uses the reserved port")
	}
}

func TestAvailableMemory(t *testing.T) {
	if got := process.AvailableMemory(); got < 1<<20 || got > 1<<50 {
		t.Errorf("available memory = %d bytes, want 1 MiB to 1 PiB", got)
	}
}

func TestStartErrors(t *testing.T) {
	s := spawner(t)
	bad := spec("fail", filepath.Join(t.TempDir(), "log"), nil)
	bad.Path = filepath.Join(t.TempDir(), "missing")
	if _, err := s.Start(bad); err == nil || !strings.Contains(err.Error(), "start fail") {
		t.Errorf("Start of a missing program = %v, want an error with the name", err)
	}
	bad.Log = filepath.Join(t.TempDir(), "no", "such", "dir")
	if _, err := s.Start(bad); err == nil {
		t.Error("Start with a log that cannot be created returned no error")
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	u := process.ReadUsage(os.Getpid())
	if u.RSS < 1<<20 || u.Shared <= 0 || u.Shared > u.RSS || u.OpenFiles < 3 {
		t.Errorf("usage of this process = %+v, want memory and open files", u)
	}
	if gone := process.ReadUsage(1 << 30); gone != (process.Usage{}) {
		t.Errorf("usage of a process that does not exist = %+v, want zero", gone)
	}
}
