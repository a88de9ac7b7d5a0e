//go:build !linux

package h2conn

import (
	"net"
	"time"
)

// Poller does nothing in this build. The runtime polls the connections.
type Poller struct{}

// NewPoller returns a poller that does nothing.
func NewPoller(time.Duration) (*Poller, error) { return &Poller{}, nil }

// Close does nothing.
func (*Poller) Close() {}

func (*Poller) add(nc net.Conn) (net.Conn, error) { return unscheduled(nc), nil }
