package node

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

const (
	// accountTokenLife is the requested lifetime of a token; the API server may grant less or more.
	accountTokenLife = 24 * time.Hour
	// accountRetry is the pause before a refused renewal is tried again.
	accountRetry = 5 * time.Second
	// accountTimeout is the time limit for one renewal of a token.
	accountTimeout = 30 * time.Second
	// proxyAccount is the ServiceAccount of all kube-proxies.
	proxyAccount = "kube-proxy"
)

// ServiceAccounts is an Identities that gives each node its own ServiceAccount and a token, for clusters that sign no
// client certificates. RBAC must permit the requests of these accounts, because the Node authorizer and NodeRestriction
// apply only to system:node:NAME. Close ends the renewal of tokens.
type ServiceAccounts struct {
	base      *rest.Config // server address and CA, without credentials
	client    kubernetes.Interface
	namespace string
	labels    map[string]string

	stop context.CancelFunc
	done chan struct{}
	wake chan struct{} // tells keep that the next renewal is due earlier than planned

	mu     sync.Mutex
	tokens map[string]*accountToken
	next   time.Time // time of the next renewal; zero: no renewal planned
}

type accountToken struct {
	made  sync.Mutex // held while the account and its first token are created
	value apiclient.Token
	due   time.Time // time of its renewal; guarded by ServiceAccounts.mu
}

// NewServiceAccounts returns a ServiceAccounts that creates accounts and tokens with client, in a namespace that must
// exist. admin provides the server's address and CA. The accounts get the given labels.
func NewServiceAccounts(admin *rest.Config, client kubernetes.Interface, namespace string, labels map[string]string) (*ServiceAccounts, error) {
	base, err := serverOnly(admin)
	if err != nil {
		return nil, err
	}
	return newServiceAccounts(base, client, namespace, labels), nil
}

func newServiceAccounts(base *rest.Config, client kubernetes.Interface, namespace string, labels map[string]string) *ServiceAccounts {
	ctx, stop := context.WithCancel(context.Background())
	s := &ServiceAccounts{
		base: base, client: client, namespace: namespace, labels: labels,
		stop: stop, done: make(chan struct{}), wake: make(chan struct{}, 1), tokens: map[string]*accountToken{},
	}
	go s.keep(ctx)
	return s
}

// Close ends the renewal of tokens. It may be called repeatedly.
func (s *ServiceAccounts) Close() {
	s.stop()
	<-s.done
}

// For creates a ServiceAccount with the node's name and a token for it, and returns the client configuration.
func (s *ServiceAccounts) For(ctx context.Context, node string) (*rest.Config, error) {
	s.mu.Lock()
	t := s.tokens[node]
	if t == nil {
		t = &accountToken{}
		s.tokens[node] = t
	}
	s.mu.Unlock()
	t.made.Lock()
	defer t.made.Unlock()
	if !t.value.Known() {
		if err := s.create(ctx, node, t); err != nil {
			return nil, err
		}
	}
	c := rest.CopyConfig(s.base)
	c.WrapTransport = t.value.Wrap
	return c, nil
}

// Token returns the newest token of a node, or of the kube-proxies if node is empty. It returns "" if there is no
// token.
func (s *ServiceAccounts) Token(node string) string {
	s.mu.Lock()
	t := s.tokens[cmp.Or(node, proxyAccount)]
	s.mu.Unlock()
	if t == nil {
		return ""
	}
	return t.value.Get()
}

// ForProxies creates the ServiceAccount kube-proxy, which all kube-proxies share, and returns its client configuration.
func (s *ServiceAccounts) ForProxies(ctx context.Context) (*rest.Config, error) {
	return s.For(ctx, proxyAccount)
}

func (s *ServiceAccounts) create(ctx context.Context, name string, t *accountToken) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: s.labels}}
	_, err := s.client.CoreV1().ServiceAccounts(s.namespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) { // exists: an earlier attempt created it but got no token
		return fmt.Errorf("create serviceaccount %s/%s: %w", s.namespace, name, err)
	}
	return s.renew(ctx, name, t)
}

// renew requests a new token, and plans its renewal after 80% of its life, as a kubelet does.
func (s *ServiceAccounts) renew(ctx context.Context, name string, t *accountToken) error {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	seconds, asked := int64(accountTokenLife.Seconds()), time.Now()
	answer, err := s.client.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create token of serviceaccount %s/%s: %w", s.namespace, name, err)
	}
	t.value.Set(answer.Status.Token)
	s.plan(t, asked.Add(max(answer.Status.ExpirationTimestamp.Sub(asked)*8/10, accountRetry)))
	return nil
}

// plan sets the time of a token's renewal.
func (s *ServiceAccounts) plan(t *accountToken, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.due = due
	if s.next.IsZero() || due.Before(s.next) {
		s.next = due
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// keep renews tokens when they are due, one after another.
func (s *ServiceAccounts) keep(ctx context.Context) {
	defer close(s.done)
	for {
		s.mu.Lock()
		next := s.next
		s.mu.Unlock()
		wait := time.Until(next)
		if next.IsZero() {
			wait = accountTokenLife
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
			s.renewDue(ctx)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (s *ServiceAccounts) renewDue(ctx context.Context) {
	now := time.Now()
	due := map[string]*accountToken{}
	s.mu.Lock()
	s.next = time.Time{}
	for name, t := range s.tokens {
		switch {
		case !t.value.Known():
		case !t.due.After(now):
			due[name] = t
		case s.next.IsZero() || t.due.Before(s.next):
			s.next = t.due
		}
	}
	s.mu.Unlock()
	for name, t := range due {
		if ctx.Err() != nil {
			return
		}
		if s.renew(ctx, name, t) != nil {
			s.plan(t, time.Now().Add(accountRetry)) // the token is still valid for a fifth of its life
		}
	}
}
