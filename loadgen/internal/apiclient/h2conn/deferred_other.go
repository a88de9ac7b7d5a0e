//go:build !linux

package h2conn

import "net"

// deferReads returns the connection unchanged, because this build does not support deferred reads.
func deferReads(nc net.Conn) (net.Conn, deferral, error) { return nc, nil, nil }
