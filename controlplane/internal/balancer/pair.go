package balancer

import (
	"cmp"
	"net"
	"sync"
	"syscall"
)

type pair struct {
	client, upstream net.Conn
	buffers          *buffers
}

// run carries bytes both ways until both sides have ended, or one has failed.
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

// carry carries one way. The end of what is read is passed on as such, for the
// other way may have more to come; a failure ends both.
func (p *pair) carry(to, from net.Conn) {
	err := p.buffers.forward(to.(*net.TCPConn), from.(*net.TCPConn))
	if err != nil || to.(*net.TCPConn).CloseWrite() != nil {
		p.close()
	}
}

// bufferSize is the size of one read in bytes: two full TLS records.
const bufferSize = 32 << 10

// buffers are shared by all connections: each is borrowed only while there is something in it.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[bufferSize]byte {
	if buffer, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return buffer
	}
	return new([bufferSize]byte)
}

// forward copies until the end of from, which is no error.
func (b *buffers) forward(to, from *net.TCPConn) error {
	raw, err := from.SyscallConn()
	if err != nil {
		return err
	}
	for {
		buffer, n, err := b.read(raw)
		if n > 0 {
			_, err = to.Write(buffer[:n])
		}
		if buffer != nil {
			b.pool.Put(buffer)
		}
		if n <= 0 || err != nil {
			return err
		}
	}
}

// read waits until there is something to read, and only then takes a buffer for
// it. Nothing and no error is the end.
func (b *buffers) read(from syscall.RawConn) (buffer *[bufferSize]byte, n int, err error) {
	var failure error
	err = from.Read(func(fd uintptr) (done bool) {
		buffer = b.get()
		for {
			if n, failure = syscall.Read(int(fd), buffer[:]); failure != syscall.EINTR {
				break
			}
		}
		if failure == syscall.EAGAIN {
			b.pool.Put(buffer)
			buffer = nil
			return false
		}
		return true
	})
	return buffer, n, cmp.Or(err, failure)
}
