package network

// Condition returns the condition that was set last.
func (l *Link) Condition() Condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.condition
}

// Set sets the condition of the link.
func (l *Link) Set(c Condition) { l.change(func(now *Condition) { *now = c }) }

// Connections returns the number of open connections, and the number of all connections since the link was created.
func (l *Link) Connections() (open int, opened int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.opened
}

// Addr returns the address on which the listener listens: "127.0.0.1:12345".
func (l *Listener) Addr() string { return l.port.listener.Addr().String() }

// Addr returns the address on which the proxy listens: "127.0.0.1:12345".
func (p *Proxy) Addr() string { return p.port.listener.Addr().String() }
