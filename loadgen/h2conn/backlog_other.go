//go:build !linux

package h2conn

import "net"

// backlog is not known here.
func backlog(net.Conn) int64 { return 0 }
