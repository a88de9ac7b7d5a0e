//go:build !linux

package h2conn

import (
	"net"
	"time"
)

// unscheduled returns the connection unchanged in this build.
func unscheduled(nc net.Conn) net.Conn { return nc }

// stampArrivals returns nil, because this build does not support arrival times.
func stampArrivals(net.Conn) (waited *time.Duration) { return nil }
