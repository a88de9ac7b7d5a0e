package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
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
