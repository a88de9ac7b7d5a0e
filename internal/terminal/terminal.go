// Package terminal keeps a process alive when the terminal or pipe to which it writes goes away, and cleans text for terminals.
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

// SurvivePipes makes a write to a pipe without a reader return an error. By default, such a write to standard output or standard
// error ends the process. Processes that this process starts keep the default.
func SurvivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Leave redirects standard output and standard error of this process to a file. The file is rotated.
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

// lossy drops data that it cannot write, for example because the disk is full, so that output never blocks the process.
type lossy struct{ to io.Writer }

func (l lossy) Write(p []byte) (int, error) {
	_, _ = l.to.Write(p)
	return len(p), nil
}
