package workers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// ask is a worker's request for the client credentials of one of its nodes.
type ask struct {
	ID   int64  `json:"id"`
	Node string `json:"node,omitempty"` // "" means the identity of all kube-proxies
}

// given is the coordinator's response to an ask: a certificate and key, a token, or an error.
type given struct {
	ID    int64  `json:"id"`
	Cert  []byte `json:"cert,omitempty"` // client certificate in PEM
	Key   []byte `json:"key,omitempty"`
	Token string `json:"token,omitempty"` // a later message.NodeTokens replaces it
	Error string `json:"error,omitempty"`
}

// renewedTokens is implemented by node identities whose tokens expire and are renewed.
type renewedTokens interface {
	// Token returns the newest token of a node. It returns "" if the node has no token.
	Token(node string) string
}

// give sends the worker the credentials that it asked for, or the reason why it gets no credentials.
func (m *member) give(a ask) {
	g, err := m.credentials(a.Node)
	if err != nil {
		g.Error = err.Error()
	}
	g.ID = a.ID
	m.post(message{Given: &g})
}

func (m *member) credentials(nodeName string) (g given, err error) {
	if m.fleet.nodes == nil {
		return g, errors.New("the workers have no nodes")
	}
	if !m.owns(nodeName) {
		return g, errors.New("the node does not belong to this worker")
	}
	if !m.mayAsk(nodeName) {
		return g, errors.New("the worker has requested these credentials too often")
	}
	ids := m.fleet.nodes.Identities
	var c *rest.Config
	if nodeName == "" {
		c, err = ids.ForProxies(m.ctx)
	} else {
		c, err = ids.For(m.ctx, nodeName)
	}
	if err != nil {
		return g, err
	}
	if t, ok := ids.(renewedTokens); ok {
		g.Token = t.Token(nodeName)
		m.mu.Lock()
		m.tokens[nodeName] = g.Token
		m.mu.Unlock()
		return g, nil
	}
	g.Cert, g.Key = c.CertData, c.KeyData
	return g, nil
}

// maxAsks is the maximum number of requests for credentials that a worker may send per node and hour. There is a limit
// because the cluster may sign a certificate for each request. A worker sends one request per node, and more after
// errors and for renewals.
const maxAsks = 20

// mayAsk counts a request for the credentials of a node, and reports whether the limit allows it. All kube-proxies
// share one identity but ask separately after an error, so the limit for this identity is higher.
func (m *member) mayAsk(nodeName string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.since) >= time.Hour {
		m.since = now
		clear(m.asks)
	}
	most := maxAsks
	if nodeName == "" {
		most *= m.fleet.nodes.Spec.Count
	}
	if m.asks[nodeName] >= most {
		return false
	}
	m.asks[nodeName]++
	return true
}

// owns reports whether the worker simulates a node. An empty name means the identity of the kube-proxies; owns then
// reports whether nodes have kube-proxies.
func (m *member) owns(nodeName string) bool {
	nodes := m.fleet.nodes
	if nodeName == "" {
		return nodes.Spec.KubeProxy
	}
	digits, ok := strings.CutPrefix(nodeName, nodes.NamePrefix)
	number, err := strconv.Atoi(digits)
	return ok && err == nil && digits == strconv.Itoa(number) && number >= 0 && number < nodes.Spec.Count && number%len(m.fleet.members) == m.index
}

// renewed returns the tokens of the worker's nodes that were renewed since the coordinator last sent them.
func (m *member) renewed(t renewedTokens) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for name, last := range m.tokens {
		if now := t.Token(name); now != last {
			all[name], m.tokens[name] = now, now
		}
	}
	return all
}

// askedIdentities provides a worker's nodes with credentials, which it requests from the coordinator.
type askedIdentities struct {
	send func(message) error
	base *rest.Config // the API server's address and CA, without credentials

	mu      sync.Mutex
	last    int64
	waiting map[int64]chan given
	tokens  map[string]*apiclient.Token // tokens of the nodes, by node name
}

func newAskedIdentities(send func(message) error, base *rest.Config) *askedIdentities {
	return &askedIdentities{
		send: send, base: rest.AnonymousClientConfig(base), waiting: map[int64]chan given{}, tokens: map[string]*apiclient.Token{},
	}
}

// For requests the credentials of a node from the coordinator.
func (a *askedIdentities) For(ctx context.Context, nodeName string) (*rest.Config, error) {
	g, err := a.ask(ctx, nodeName)
	if err != nil {
		return nil, err
	}
	c := rest.CopyConfig(a.base)
	if g.Token == "" {
		c.CertData, c.KeyData = g.Cert, g.Key
		return c, nil
	}
	token := &apiclient.Token{}
	token.Set(g.Token)
	c.WrapTransport = token.Wrap
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens[nodeName] = token
	return c, nil
}

// ForProxies requests the credentials that all kube-proxies share.
func (a *askedIdentities) ForProxies(ctx context.Context) (*rest.Config, error) {
	return a.For(ctx, "")
}

func (a *askedIdentities) ask(ctx context.Context, nodeName string) (given, error) {
	answer := make(chan given, 1)
	a.mu.Lock()
	a.last++
	id := a.last
	a.waiting[id] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.waiting, id)
		a.mu.Unlock()
	}()
	if err := a.send(message{Ask: &ask{ID: id, Node: nodeName}}); err != nil {
		return given{}, err
	}
	select {
	case g := <-answer:
		if g.Error != "" {
			return g, errors.New(g.Error)
		}
		return g, nil
	case <-ctx.Done():
		return given{}, ctx.Err()
	}
}

// take passes a response of the coordinator to the goroutine that waits for it.
func (a *askedIdentities) take(g given) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if waiting := a.waiting[g.ID]; waiting != nil {
		waiting <- g
		delete(a.waiting, g.ID)
	}
}

// renew replaces the tokens of nodes by tokens that the coordinator has renewed.
func (a *askedIdentities) renew(tokens map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, text := range tokens {
		if t := a.tokens[name]; t != nil {
			t.Set(text)
		}
	}
}
