//go:build !linux

package kubeletapi

import (
	"context"
	"errors"
	"net"
)

// ListenLoopback needs Linux, where sockets can be bound to the loopback device.
func ListenLoopback(context.Context) (net.Listener, error) { return nil, errors.ErrUnsupported }
