package kubeletapi

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ListenLoopback listens on all addresses of the loopback device, 127.0.0.0/8, and on no other device. It listens on
// Port, or on a free port if Port is in use.
func ListenLoopback(ctx context.Context) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if failed := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "lo") }); failed != nil {
			return failed
		}
		return err
	}}
	l, err := config.Listen(ctx, "tcp4", fmt.Sprintf(":%d", Port))
	if err != nil {
		return config.Listen(ctx, "tcp4", ":0")
	}
	return l, nil
}
