//go:build !linux

package h2conn

import "net"

// backlog returns 0: the number of unread bytes is unknown on this platform.
func backlog(net.Conn) int64 { return 0 }

// queues does nothing: the queues of a socket cannot be read on this platform.
type queues struct{}

func newQueues(net.Conn) *queues { return &queues{} }

func (*queues) unsent() int64 { return -1 }
