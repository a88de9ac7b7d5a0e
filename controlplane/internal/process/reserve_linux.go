package process

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve keeps the kernel from assigning a loopback port, above all to outgoing
// connections, while the component that listens on it does not run. A process can
// still listen on it by number, as the component does: both have
// SO_REUSEADDR, as Go's listeners do, and this socket does not listen.
func Reserve(port int) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: netip.MustParseAddr("127.0.0.1").As4()})
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("reserve port %d: %w", port, err)
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("port %d", port)), nil
}
