package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stub writes a script that replaces controlplane. It sets a short time limit for StopNow, and a long one for Stop.
func stub(t *testing.T, body string) (binary string) {
	binary = filepath.Join(t.TempDir(), "controlplane")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	graceful, now := stopWithin, stopNowWithin
	t.Cleanup(func() { stopWithin, stopNowWithin = graceful, now })
	stopWithin, stopNowWithin = time.Hour, time.Millisecond
	return binary
}

// StopNow kills a supervisor that ignores signals or is stopped by SIGSTOP, and the children that hold its output open.
func TestStopNowKillsAHangingSupervisor(t *testing.T) {
	for name, then := range map[string]string{"ignores signals": "", "is stopped": "kill -STOP $$"} {
		t.Run(name, func(t *testing.T) {
			s, err := Start(t.Context(), StartOptions{Dir: "d", Binary: stub(t, `trap '' TERM INT
sleep 1000 &
echo '{"schema":"stormglass.cluster/v1"}'
`+then+`
wait`)})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.StopNow(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "was killed: it took longer than 1ms") {
				t.Errorf("StopNow = %v, want an error that says that the supervisor was killed", err)
			}
		})
	}
}

// When its context ends, Start kills a program that never becomes ready and ignores signals.
func TestStartKillsAHangingProgram(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	binary := stub(t, `trap '' TERM INT; echo up >&2; sleep 1000`)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() { // when the program ignores signals
		_, _ = fmt.Fscanln(read, new(string))
		cancel(enough)
	}()
	if _, err := Start(ctx, StartOptions{Binary: binary, Dir: "d", Progress: write}); !errors.Is(err, enough) {
		t.Errorf("Start = %v, want the cause of its context", err)
	}
}
