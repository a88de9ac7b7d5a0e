//go:build !linux

package h2conn

import "net"

// backlog is unknown on this platform.
func backlog(net.Conn) int64 { return 0 }

// queues of a socket cannot be read on this platform.
type queues struct{}

func newQueues(net.Conn) *queues { return &queues{} }

func (*queues) unsent() int64 { return -1 }
