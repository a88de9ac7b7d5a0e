package loopback

import (
	"strings"
	"testing"
)

// TestCheck checks that an address that other machines can reach is refused unless public is set.
func TestCheck(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:9090": true, "[::1]:9090": true, "127.8.8.8:1": true,
		"0.0.0.0:9090": false, ":9090": false, "[::]:9090": false, "10.0.0.1:9090": false, "example.org:9090": false,
		"9090": false, "127.0.0.1": false, "": false,
	} {
		err := Check(addr, false)
		if (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than one line: %v", addr, err)
		}
	}
	if err := Check("0.0.0.0:9090", true); err != nil {
		t.Errorf("refused although it was allowed: %v", err)
	}
	if err := Check("9090", true); err == nil {
		t.Error("Check accepts an invalid address")
	}
}

// TestIsHost checks that only names of this machine are accepted in a Host header, with or without a port.
func TestIsHost(t *testing.T) {
	for header, ok := range map[string]bool{
		"127.0.0.1:9090": true, "127.0.0.1": true, "localhost:1": true, "localhost": true, "[::1]:9090": true, "[::1]": true,
		"example.org": false, "example.org:9090": false, "10.0.0.1:9090": false, "": false,
	} {
		if IsHost(header) != ok {
			t.Errorf("%q: %v, want %v", header, !ok, ok)
		}
	}
}
