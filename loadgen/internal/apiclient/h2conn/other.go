//go:build !linux

package h2conn

import (
	"net"
	"time"
)

// On this platform, connections are not optimized. The runtime polls them. Arrival times are unknown, and so are the
// lengths of a socket's queues.

// Poller does nothing in this build.
type Poller struct{}

// NewPoller returns a poller that does nothing.
func NewPoller(time.Duration) (*Poller, error) { return &Poller{}, nil }

// Close does nothing.
func (*Poller) Close() {}

func (*Poller) add(nc net.Conn) (net.Conn, error) { return nc, nil }

// queues stands for a socket's kernel queues, whose lengths are unknown in this build.
type queues struct{}

func newQueues(net.Conn) *queues { return &queues{} }

func (*queues) unsent() int64 { return -1 }

func backlog(net.Conn) int64 { return 0 }

func deferReads(nc net.Conn) (net.Conn, deferral, error) { return nc, nil, nil }

func unscheduled(nc net.Conn) net.Conn { return nc }

func stampArrivals(net.Conn) (waited *time.Duration) { return nil }
