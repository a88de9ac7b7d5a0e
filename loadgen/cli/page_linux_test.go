package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/result"
)

// keyboard is a pseudo-terminal on which a loadgen runs.
type keyboard struct {
	t       *testing.T
	process *loadgenProcess
	master  *os.File
	before  unix.Termios

	mu   sync.Mutex
	text string        // all output so far
	more chan struct{} // closed when more output arrives
	read int           // how much of text await has read
}

// typeAt starts a loadgen on a terminal of the given size.
func typeAt(t *testing.T, p *loadgenProcess, columns, rows uint16) *keyboard {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	k := &keyboard{t: t, process: p, master: master, more: make(chan struct{})}
	var number int
	k.control(func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		if number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
			return err
		}
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	k.before = k.settings()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	p.cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "NO_COLOR=") || strings.HasPrefix(s, "TERM=") })
	p.cmd.Env = append(p.cmd.Env, "TERM=xterm-256color")
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	go k.listen()
	return k
}

func (k *keyboard) control(f func(fd int) error) {
	k.t.Helper()
	conn, err := k.master.SyscallConn()
	if err != nil {
		k.t.Fatal(err)
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil || failed != nil {
		k.t.Fatal(err, failed)
	}
}

// settings returns the settings of the terminal, without its input.
func (k *keyboard) settings() (s unix.Termios) {
	k.t.Helper()
	k.control(func(fd int) error {
		now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			s = *now
		}
		return err
	})
	return s
}

func (k *keyboard) listen() {
	data := make([]byte, 1<<14)
	begun := "" // an incomplete escape sequence
	for {
		n, err := k.master.Read(data)
		text := begun + string(data[:n])
		begun = ""
		if i := strings.LastIndexByte(text, 0x1b); i >= 0 && len(text)-i < 8 {
			text, begun = text[:i], text[i:]
		}
		k.mu.Lock()
		k.text += styles.ReplaceAllString(text, "")
		close(k.more)
		k.more = make(chan struct{})
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// await waits until the terminal shows the given text after the text that it awaited last.
func (k *keyboard) await(words string) {
	k.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		k.mu.Lock()
		text, more := k.text, k.more
		k.mu.Unlock()
		if i := strings.Index(text[k.read:], words); i >= 0 {
			k.read += i + len(words)
			return
		}
		select {
		case <-more:
		case <-late:
			k.t.Fatalf("the page never showed %q after:\n%s", words, text[:k.read])
		}
	}
}

func (k *keyboard) press(keys string) {
	k.t.Helper()
	if _, err := k.master.WriteString(keys); err != nil {
		k.t.Fatal(err)
	}
}

// Keys on the page pause load, end a phase and end the run; the report says so, and the terminal gets its
// settings back.
func TestKeysCommandARun(t *testing.T) {
	t.Parallel()
	runTurns.take(t)
	dir := filepath.Join(planetest.Dir(t), "run")
	k := typeAt(t, newLoadgen(t, "run", twoPhasesFile(t), "--controlplane", plane.Binary, "--out", dir), 100, 30)
	k.await(enterPage[:len("\x1b[?1049h")])
	k.await("▶ first")
	k.press("?")
	k.await("show this help, or the charts again")
	k.press("?")
	k.await("requests/s")
	k.press("p")
	k.await("LOAD PAUSED for 00:0")
	k.await("p resume load")
	k.press("p")
	k.await("p pause load")
	k.press("n")
	k.await("✓ first")
	k.await("▶ second")
	k.press("q")
	k.await("interrupted: shutting down cleanly")
	k.await("\x1b[?1049l")
	// The page's messages are below the terminal's earlier content.
	k.await("load is paused: gates that cover phase first will not be judged")
	k.await("phase first ends early")
	k.await("NO DATA")
	_ = k.process.cmd.Wait() // the exit code is checked below
	if code := k.process.cmd.ProcessState.ExitCode(); code != exitcode.NoData {
		t.Errorf("exit code %d, want %d", code, exitcode.NoData)
	}
	if after := k.settings(); after != k.before {
		t.Errorf("the terminal's settings changed from\n%+v to\n%+v", k.before, after)
	}
	r := readResult(t, dir)
	if first := r.Measurements.Phases[0]; !first.EndedEarly || first.PausedSeconds <= 0 || first.Interrupted {
		t.Errorf("the first phase: ended early %v, paused %v s, interrupted %v", first.EndedEarly, first.PausedSeconds, first.Interrupted)
	}
	if g := r.Gates[0]; g.Verdict != result.NoData || !strings.Contains(g.Detail, "ended early by the user") {
		t.Errorf("gate %+v", g)
	}
	awaitNoProcess(t, dir)
}

// Progress is shown in lines if the user requests it, or if the terminal is too small for a page.
func TestTerminalWithoutAPage(t *testing.T) {
	for name, c := range map[string]struct {
		columns, rows uint16
		flags         []string
	}{
		"--plain": {100, 30, []string{"--plain"}}, "--no-color": {100, 30, []string{"--no-color"}}, "a small terminal": {79, 30, nil},
		"a low terminal": {100, 23, nil},
	} {
		t.Run(name, func(t *testing.T) {
			useSharedPlane(t)
			dir := filepath.Join(planetest.Dir(t), "run")
			args := append([]string{"run", "testdata/short.yaml", "--kubeconfig", plane.Cluster().Kubeconfigs["admin"], "--yes", "--out", dir}, c.flags...)
			k := typeAt(t, newLoadgen(t, args...), c.columns, c.rows)
			k.await("phase only: for 2s")
			k.await("only 00:0")
			k.await("report  ")
			_ = k.process.cmd.Wait() // the test checks the output
			k.mu.Lock()
			defer k.mu.Unlock()
			if strings.Contains(k.text, "\x1b[?1049h") {
				t.Error("loadgen showed a page")
			}
		})
	}
}
