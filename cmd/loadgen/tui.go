package main

// The rules of the interface:
//   - results go to standard output, progress and questions to standard error;
//   - on a terminal the last line is redrawn once a second, elsewhere a plain
//     line is written every ten seconds;
//   - a step is one line, said once;
//   - nothing is coloured here: the summary is where the eye should go.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stormglass/stormglass/loadgen"
)

const plainEvery = 10 * time.Second

type tui struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	quiet    bool // only questions are written
	columns  int
	drawn    bool // the live line stands on the terminal
	began    time.Time
	plain    time.Time // of the last plain live line
}

func newTUI(cmd *cobra.Command) *tui {
	w := cmd.ErrOrStderr()
	t := &tui{w: w, quiet: quiet(cmd), columns: width(w), began: time.Now()}
	if f, ok := w.(*os.File); ok {
		t.terminal = term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
	}
	return t
}

// Step writes a line above the live one.
func (t *tui) Step(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet {
		return
	}
	t.clear()
	fmt.Fprintf(t.w, "%s  %s\n", clock(time.Since(t.began)), line)
}

// Live redraws the last line, or writes one now and then.
func (t *tui) Live(s loadgen.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet {
		return
	}
	if !t.terminal {
		if now := time.Now(); now.Sub(t.plain) >= plainEvery {
			t.plain = now
			fmt.Fprintf(t.w, "%s  %s\n", clock(time.Since(t.began)), liveLine(s))
		}
		return
	}
	line := fmt.Sprintf("%s  %s", clock(time.Since(t.began)), liveLine(s))
	if r := []rune(line); len(r) >= t.columns {
		line = string(r[:t.columns-1])
	}
	t.clear()
	fmt.Fprint(t.w, line)
	t.drawn = true
}

func (t *tui) clear() {
	if t.drawn {
		fmt.Fprint(t.w, "\r\x1b[K")
		t.drawn = false
	}
}

func (t *tui) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

func liveLine(s loadgen.Snapshot) string {
	var b strings.Builder
	switch {
	case s.Phase == "":
		fmt.Fprint(&b, "getting ready")
	case s.Length == 0:
		fmt.Fprintf(&b, "%s %s", s.Phase, clock(s.Elapsed))
	default:
		fmt.Fprintf(&b, "%s %s/%s", s.Phase, clock(s.Elapsed), clock(s.Length))
	}
	if s.Offered > 0 {
		fmt.Fprintf(&b, " | %.0f/s offered, %.0f/s achieved, p99 %s", s.Offered, s.Achieved, s.P99.Round(100*time.Microsecond))
	}
	if s.Nodes > 0 {
		fmt.Fprintf(&b, " | nodes %d/%d Ready", s.NodesReady, s.Nodes)
	}
	if s.PodsWanted > 0 {
		fmt.Fprintf(&b, " | pods %d/%d Ready", s.PodsReady, s.PodsWanted)
	}
	if s.WatchesOpen > 0 {
		fmt.Fprintf(&b, " | %d watches, %d events", s.WatchesOpen, s.Delivered)
	}
	return b.String()
}

func clock(d time.Duration) string {
	s := int(d / time.Second)
	return fmt.Sprintf("%02d:%02d", s/60, s%60)
}

// confirm asks before something is made in a user's cluster.
func (t *tui) confirm(ctx context.Context, in io.Reader, plan string, yes bool) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.w, plan)
	if yes {
		return true, nil
	}
	if f, ok := in.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return false, loadgen.Usage(fmt.Errorf("there is no terminal to confirm this (add --yes where no user can answer, as in CI)"))
	}
	fmt.Fprint(t.w, "Go ahead? [y/N] ")
	return yesOrNo(ctx, in)
}

// yesOrNo reads an answer; Ctrl-C is one too. A read of a terminal cannot be
// called off: it ends with the program, which is about to.
func yesOrNo(ctx context.Context, in io.Reader) (bool, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case answer := <-read:
		if answer.err != nil {
			return false, loadgen.Usage(fmt.Errorf("read the answer: %w", answer.err))
		}
		text := strings.ToLower(strings.TrimSpace(answer.text))
		return text == "y" || text == "yes", nil
	}
}
