// Package loopback tells addresses of this machine alone from those that
// others reach.
package loopback

import (
	"fmt"
	"net"
)

// Is reports whether a host, a name or an address, is this machine as only it
// can call itself. Of names it believes localhost alone.
func Is(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Check refuses an addr that is not HOST:PORT, and, unless public, an address
// that other machines can reach. Errors are one line, with a hint.
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
	return fmt.Errorf("%s is open to the network, and there is no password (listen on 127.0.0.1, or add --observe-public if that is meant)", addr)
}
