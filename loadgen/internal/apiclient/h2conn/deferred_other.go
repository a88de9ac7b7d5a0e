//go:build !linux || race

package h2conn

import "net"

// deferReads returns the connection unchanged: deferred reads are not supported in this build.
func deferReads(nc net.Conn) (net.Conn, deferral, error) { return nc, nil, nil }
