// Package terminal lets a process outlive the terminal, or the pipe, that it was started from.
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
	outputFiles     = 2 // older ones
)

// SurvivePipes makes a write to a pipe without a reader an error. By default one to standard output or error ends the process. The
// processes that this one starts keep the default.
func SurvivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Leave sends what this process still writes to its standard output and error to a file, which is rotated.
func Leave(file string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	defer w.Close() // it is duplicated
	if err := errors.Join(unix.Dup2(int(w.Fd()), 1), unix.Dup2(int(w.Fd()), 2)); err != nil {
		return errors.Join(fmt.Errorf("leave the terminal: %w", err), r.Close())
	}
	go func() {
		_, _ = io.Copy(lossy{&lumberjack.Logger{Filename: file, MaxSize: outputMegabytes, MaxBackups: outputFiles}}, r)
	}()
	return nil
}

// lossy drops what cannot be written, as on a full disk: the writer must not wait.
type lossy struct{ to io.Writer }

func (l lossy) Write(p []byte) (int, error) {
	_, _ = l.to.Write(p)
	return len(p), nil
}
