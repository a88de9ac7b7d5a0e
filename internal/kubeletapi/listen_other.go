//go:build !linux

package kubeletapi

import (
	"context"
	"errors"
	"net"
)

// ListenLoopback returns errors.ErrUnsupported: only Linux can bind a socket to the loopback device.
func ListenLoopback(context.Context) (net.Listener, error) { return nil, errors.ErrUnsupported }
