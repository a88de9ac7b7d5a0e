// Package loopback distinguishes loopback addresses from addresses that other machines can reach.
package loopback

import (
	"fmt"
	"net"
	"strings"
)

// Is reports whether host is a loopback address or the name localhost. It does not resolve names.
func Is(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// IsHost reports whether the Host header of a request names a loopback address or localhost. DNS rebinding cannot reach
// a server that refuses other names.
func IsHost(header string) bool {
	host, _, err := net.SplitHostPort(header)
	if err != nil {
		host = strings.Trim(header, "[]")
	}
	return Is(host)
}

// Check returns an error, in one line with a hint, if addr is not HOST:PORT, or if other machines can reach addr and
// public is false.
func Check(addr string, public bool) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address to listen on (write 127.0.0.1:9090, or port 0 for a free one)", addr)
	}
	if public || Is(host) {
		return nil
	}
	return fmt.Errorf("%s is open to the network, and there is no password (listen on 127.0.0.1, or add --observe-public if that is intended)", addr)
}
