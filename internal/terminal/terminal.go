// Package terminal keeps a process alive when its terminal or the reader of its pipe disappears, and cleans text for
// terminals.
package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// SurvivePipes makes a write to a pipe without a reader return an error. By default, such a write to standard output or
// standard error ends the process. Processes that this process starts keep the default.
func SurvivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// Leave makes this process append its standard output and standard error to a file.
func Leave(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	defer f.Close() // standard output and error keep duplicates
	if err := errors.Join(unix.Dup2(int(f.Fd()), 1), unix.Dup2(int(f.Fd()), 2)); err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	return nil
}
