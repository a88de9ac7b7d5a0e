//go:build !linux

package fsync

import (
	"context"
	"fmt"
	"os"
	"runtime"
)

// Available returns an error that wraps ErrUnavailable: only Linux has seccomp.
func Available() error {
	return fmt.Errorf("%w: it requires seccomp, which only Linux has; this system is %s", ErrUnavailable, runtime.GOOS)
}

// StartAgent does nothing, because no supervisor on this system can use an agent.
func StartAgent() error { return nil }

// Agent is not available on this system. NewAgent, and all methods of Agent except Close, return the error of
// Available.
type Agent struct{}

func NewAgent() (*Agent, *os.File, error)           { return nil, nil, Available() }
func (*Agent) Set(context.Context, Delay) error     { return Available() }
func (*Agent) Clear(context.Context) error          { return Available() }
func (*Agent) Stats(context.Context) (Stats, error) { return Stats{}, Available() }
func (*Agent) Close() error                         { return nil }
