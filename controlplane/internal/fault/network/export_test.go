package network

// Condition is the state requested last.
func (l *Link) Condition() Condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.condition
}

// Set puts the link in a condition.
func (l *Link) Set(c Condition) { l.change(func(now *Condition) { *now = c }) }

// Connections counts those that are open, and all since the link was made.
func (l *Link) Connections() (open int, opened int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.opened
}

// Addr returns the address that it listens on: "127.0.0.1:12345".
func (l *Listener) Addr() string { return l.port.listener.Addr().String() }

// Addr returns the address that it listens on: "127.0.0.1:12345".
func (p *Proxy) Addr() string { return p.port.listener.Addr().String() }
