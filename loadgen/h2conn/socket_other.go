//go:build !linux || race

package h2conn

import "net"

// unscheduled changes nothing here.
func unscheduled(nc net.Conn) net.Conn { return nc }
