// Package terminal makes a process survive the end of the terminal or pipe that it writes to, and cleans text for terminals.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"
)

const (
	outputMegabytes = 10
	outputFiles     = 2 // number of rotated files
)

// SurvivePipes makes a write to a pipe without a reader return an error. By default such a write to standard output or error
// ends the process. Processes that this one starts keep the default.
func SurvivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Leave redirects standard output and error of this process to a file, which is rotated.
func Leave(file string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	defer w.Close() // standard output and error keep duplicates
	if err := errors.Join(unix.Dup2(int(w.Fd()), 1), unix.Dup2(int(w.Fd()), 2)); err != nil {
		return errors.Join(fmt.Errorf("leave the terminal: %w", err), r.Close())
	}
	go func() {
		_, _ = io.Copy(lossy{&lumberjack.Logger{Filename: file, MaxSize: outputMegabytes, MaxBackups: outputFiles}}, r)
	}()
	return nil
}

// lossy drops data that it cannot write, as on a full disk, so that the process never blocks on its output.
type lossy struct{ to io.Writer }

func (l lossy) Write(p []byte) (int, error) {
	_, _ = l.to.Write(p)
	return len(p), nil
}
