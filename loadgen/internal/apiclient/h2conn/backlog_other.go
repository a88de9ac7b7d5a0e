//go:build !linux

package h2conn

import "net"

// backlog is not known here.
func backlog(net.Conn) int64 { return 0 }

// queues of a socket cannot be asked for here.
type queues struct{}

func newQueues(net.Conn) *queues { return &queues{} }

func (*queues) unsent() int64 { return -1 }
