package balancer

import (
	"cmp"
	"net"
	"sync"
	"syscall"
)

type pair struct {
	client, upstream net.Conn
	buffers          *sync.Pool // holds values of type *[bufferSize]byte
}

// run copies data in both directions. It returns when both connections have ended or a copy has failed.
func (p *pair) run() {
	var both sync.WaitGroup
	both.Go(func() { p.carry(p.upstream, p.client) })
	both.Go(func() { p.carry(p.client, p.upstream) })
	both.Wait()
}

func (p *pair) close() {
	p.client.Close()
	p.upstream.Close()
}

// carry copies data between two connections. When `from` ends, carry closes only the write side of `to`, because the
// other direction may still carry data. A failure closes both connections.
func (p *pair) carry(to, from net.Conn) {
	err := p.forward(to.(*net.TCPConn), from.(*net.TCPConn))
	if err != nil || to.(*net.TCPConn).CloseWrite() != nil {
		p.close()
	}
}

// bufferSize is the size of one read in bytes: two full TLS records.
const bufferSize = 32 << 10

// forward copies data until the connection `from` ends, and then returns nil.
func (p *pair) forward(to, from *net.TCPConn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	for {
		buffer, n, err := p.read(raw)
		if n > 0 {
			_, err = to.Write(buffer[:n])
		}
		if buffer != nil {
			p.buffers.Put(buffer)
		}
		if n <= 0 || err != nil {
			return err
		}
	}
}

// read waits until data arrives and only then takes a buffer. At the end of the input it returns n = 0 without an
// error.
func (p *pair) read(from syscall.RawConn) (buffer *[bufferSize]byte, n int, err error) {
	var failure error
	err = from.Read(func(fd uintptr) (done bool) {
		buffer = p.buffers.Get().(*[bufferSize]byte)
		for {
			if n, failure = syscall.Read(int(fd), buffer[:]); failure != syscall.EINTR {
				break
			}
		}
		if failure == syscall.EAGAIN {
			p.buffers.Put(buffer)
			buffer = nil
			return false
		}
		return true
	})
	return buffer, n, cmp.Or(err, failure)
}
