package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/run"
)

func TestCtrlCAnswersTheQuestion(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, keyboard := io.Pipe()
	defer keyboard.Close() // ends the read
	cancel()
	if ok, err := yesOrNo(ctx, in); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", ok, err)
	}
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false} {
		if ok, err := yesOrNo(t.Context(), strings.NewReader(answer)); ok != want || err != nil {
			t.Errorf("%q: %v, %v", answer, ok, err)
		}
	}
}

// No text of a cluster or a peer can control the terminal or reverse the reading order.
func TestProgressIsClean(t *testing.T) {
	const hostile, harmless = "a\x1b[2J\u202eb", "a[2Jb"
	var out strings.Builder
	for name, show := range map[string]func(*tui) error{
		"step":            func(u *tui) error { u.Step("warning: " + hostile); return nil },
		"requested line":  func(u *tui) error { u.quiet = true; u.tell(hostile); return nil },
		"live line":       func(u *tui) error { u.Live(run.Snapshot{Failure: hostile}); return nil },
		"redrawn line":    func(u *tui) error { u.terminal = true; u.Live(run.Snapshot{Failure: hostile}); return nil },
		"plan to confirm": func(u *tui) error { _, err := u.confirm(t.Context(), nil, hostile, true); return err },
	} {
		out.Reset()
		err := show(&tui{w: &out, columns: 80, began: time.Now()})
		if text := out.String(); err != nil || !strings.Contains(text, harmless) || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}
