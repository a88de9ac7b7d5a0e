package network

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Target is a component to which the proxied component connects.
type Target struct {
	// To is the name of the component.
	To string
	// Host is the address of the component in URLs that the proxied component uses: "etcd-1.stormglass.invalid:12380".
	// No program resolves this name. Only a Proxy uses Host.
	Host string
	// Upstream is the address where the component really listens.
	Upstream string
}

// Proxy is the forward proxy of one component. It serves only HTTP CONNECT. Pass the proxy's URL ("http://" and its
// address) to the component as HTTPS_PROXY. Go's net/http bypasses a proxy for loopback addresses and "localhost", so
// the component must address its peers by other names.
type Proxy struct {
	from  string
	links map[string]*Link // links of the proxy, by Target.Host
	order []*Link
	port  *port

	mu     sync.Mutex
	closed bool
	asking map[*net.TCPConn]struct{} // connections whose CONNECT request has not been read yet
}

// ListenProxy starts the proxy of the component `from`, with a link to each target. `listen` is a loopback address;
// port 0 means any free port.
func ListenProxy(from, listen string, targets []Target) (*Proxy, error) {
	p := &Proxy{from: from, links: map[string]*Link{}, asking: map[*net.TCPConn]struct{}{}}
	for _, t := range targets {
		if _, _, err := net.SplitHostPort(t.Host); err != nil {
			return nil, fmt.Errorf("proxy of %s: host of %s: %w", from, t.To, err)
		}
		if other, ok := p.links[t.Host]; ok {
			return nil, fmt.Errorf("proxy of %s: %s is both %s and %s", from, t.Host, other.to, t.To)
		}
		link := newLink(from, t.To, t.Upstream)
		p.links[t.Host] = link
		p.order = append(p.order, link)
	}
	port, err := open(listen, p.serve)
	if err != nil {
		return nil, fmt.Errorf("proxy of %s: %w", from, err)
	}
	p.port = port
	return p, nil
}

// Links returns the links to the targets, in the order of the targets.
func (p *Proxy) Links() []*Link { return p.order }

// Close ends the proxy and all connections, and returns when they have ended.
func (p *Proxy) Close() error {
	err := p.port.stop()
	p.mu.Lock()
	p.closed = true
	for c := range p.asking {
		reset(c)
	}
	p.mu.Unlock()
	for _, l := range p.order {
		l.close()
	}
	p.port.wait()
	return err
}

// askPatience is the time limit for a CONNECT request, and askBytes its maximum size.
const (
	askPatience = 10 * time.Second
	askBytes    = 64 << 10
)

func (p *Proxy) serve(c *net.TCPConn) {
	link, from, err := p.readConnect(c)
	if err != nil {
		_ = answer(c, err)
		c.Close()
		return
	}
	link.carry(c, from, func(err error) error { return answer(c, err) })
}

// refusal is the error of a refused request, with the HTTP status of the response.
type refusal struct {
	status int
	why    string
}

func (r refusal) Error() string { return r.why }

// readConnect reads a CONNECT request. It returns the link to the requested host, and a reader of the client's further
// bytes.
func (p *Proxy) readConnect(c *net.TCPConn) (*Link, io.Reader, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, nil, errCutOff
	}
	p.asking[c] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.asking, c)
		p.mu.Unlock()
	}()
	if err := c.SetReadDeadline(time.Now().Add(askPatience)); err != nil {
		return nil, nil, err
	}
	r := bufio.NewReader(io.LimitReader(c, askBytes))
	request, err := http.ReadRequest(r)
	if err != nil {
		return nil, nil, refusal{http.StatusBadRequest, err.Error()}
	}
	if request.Method != http.MethodConnect {
		return nil, nil, refusal{http.StatusMethodNotAllowed, "this proxy supports only CONNECT"}
	}
	link, ok := p.links[request.Host]
	if !ok {
		return nil, nil, refusal{http.StatusForbidden, fmt.Sprintf("%s has no link to %s", p.from, request.Host)}
	}
	early, err := r.Peek(r.Buffered())
	if err != nil {
		return nil, nil, err
	}
	return link, io.MultiReader(bytes.NewReader(early), c), c.SetReadDeadline(time.Time{})
}

// answer responds to a CONNECT request with success, or with err if err is not nil.
func answer(c net.Conn, err error) error {
	if err == nil {
		_, err = io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		return err
	}
	r := refusal{http.StatusBadGateway, err.Error()}
	errors.As(err, &r)
	_, err = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
		r.status, http.StatusText(r.status), len(r.why)+1, r.why)
	return err
}
