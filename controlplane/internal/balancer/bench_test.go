package balancer_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/internal/balancer"
)

// BenchmarkExchange measures the round trip of a small message with and without the balancer. The difference is the
// balancer's cost.
func BenchmarkExchange(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 512)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						return
					}
					if _, err := conn.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	lb, err := balancer.Listen("127.0.0.1:0", []balancer.Backend{{Name: "x", Address: listener.Addr().String(), Ready: "https://x/"}},
		unreachable(), balancer.Options{Interval: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	defer lb.Close()
	for name, address := range map[string]string{"past": listener.Addr().String(), "through": lb.Address()} {
		b.Run(name, func(b *testing.B) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			message := make([]byte, 400)
			for b.Loop() {
				if _, err := conn.Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
