package cli

// The rules of the interface:
//   - results go to standard output, progress and questions to standard error;
//   - on a terminal a run has a page (page.go), and the last line of other commands
//     is redrawn once a second; elsewhere a plain line is written every ten seconds;
//   - each step is printed once, on one line;
//   - text may come from a cluster or another program, so it is printed without control characters and bidi marks;
//   - nothing is coloured here, because users should look at the summary.

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

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

const plainEvery = 10 * time.Second

type tui struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	quiet    bool // print only questions
	columns  int
	drawn    bool // the live line is on the terminal
	began    time.Time
	plain    time.Time // when the last live line was written to an output that is not a terminal
	page     *page     // page that shows the run, or nil
}

func newTUI(cmd *cobra.Command) *tui {
	w := cmd.ErrOrStderr()
	t := &tui{w: w, quiet: quiet(cmd), columns: terminal.Columns(w), began: time.Now()}
	t.terminal = terminal.IsTerminal(w) && os.Getenv("TERM") != "dumb"
	return t
}

// Step writes a line above the live line.
func (t *tui) Step(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet {
		return
	}
	line = fmt.Sprintf("%s  %s", run.Clock(time.Since(t.began)), terminal.CleanLines(line))
	if t.page.step(line) {
		return
	}
	t.clear()
	fmt.Fprintln(t.w, line)
}

// tell is like Step, but writes the line even if the user has turned progress off. It is for lines that the user
// requested.
func (t *tui) tell(line string) {
	if t.quiet {
		fmt.Fprintln(t.w, terminal.CleanLines(line))
		return
	}
	t.Step(line)
}

// show sets the page of the run. The first snapshot opens the page.
func (t *tui) show(p *page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.page = p
}

// Live shows the state of the run on the page. Without a page, it redraws the last line of the terminal. If the output is
// not a terminal, it writes a line every ten seconds.
func (t *tui) Live(s run.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet {
		return
	}
	if t.page.show(s) {
		return
	}
	state := terminal.Clean(s.String())
	if !t.terminal {
		if now := time.Now(); now.Sub(t.plain) >= plainEvery {
			t.plain = now
			fmt.Fprintf(t.w, "%s  %s\n", run.Clock(time.Since(t.began)), state)
		}
		return
	}
	line := fmt.Sprintf("%s  %s", run.Clock(time.Since(t.began)), state)
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

// done closes the page and ends the live line. It prints the steps that the page has shown; they remain on the
// terminal.
func (t *tui) done() {
	t.mu.Lock()
	p := t.page
	t.mu.Unlock()
	steps := p.close() // not with mu locked: a handler of the page's keys may be about to write a step
	t.mu.Lock()
	defer t.mu.Unlock()
	t.page = nil
	t.clear()
	for _, line := range steps {
		fmt.Fprintln(t.w, line)
	}
}

func (t *tui) confirm(ctx context.Context, in io.Reader, plan string, yes bool) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.w, terminal.CleanLines(plan))
	if yes {
		return true, nil
	}
	if !terminal.IsTerminal(in) {
		return false, exitcode.Usagef("there is no terminal to ask for confirmation (to continue without asking, as in CI, add --yes)")
	}
	fmt.Fprint(t.w, "Continue? [y/N] ")
	return yesOrNo(ctx, in)
}

// yesOrNo reads the user's answer. It returns early when ctx ends. The goroutine that reads from the terminal cannot be
// canceled, and ends only with the program.
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
			return false, exitcode.Usagef("read your answer: %w", answer.err)
		}
		text := strings.ToLower(strings.TrimSpace(answer.text))
		return text == "y" || text == "yes", nil
	}
}
