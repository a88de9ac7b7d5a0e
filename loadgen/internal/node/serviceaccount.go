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
	// accountTokenLife is the requested lifetime of a token.
	accountTokenLife = 24 * time.Hour
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

	ctx      context.Context // ends when Close is called
	stop     context.CancelFunc
	keeping  sync.WaitGroup // counts the goroutines; each token has one
	renewing sync.Mutex     // held during a renewal, so that tokens are renewed one after another

	mu     sync.Mutex
	tokens map[string]*accountToken
}

type accountToken struct {
	made  sync.Mutex // held while the account and its first token are created
	value apiclient.Token
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
	s := &ServiceAccounts{base: base, client: client, namespace: namespace, labels: labels, tokens: map[string]*accountToken{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// Close ends the renewal of tokens. It may be called repeatedly.
func (s *ServiceAccounts) Close() {
	s.mu.Lock()
	s.stop() // no further goroutine starts
	s.mu.Unlock()
	s.keeping.Wait()
}

// For returns a node's client configuration. Its first call creates the node's ServiceAccount and a token.
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
	life, err := s.renew(ctx, name, t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.keeping.Go(func() { s.keep(name, t, life) })
	}
	return nil
}

// renew requests a new token, and returns the time after which to renew it.
func (s *ServiceAccounts) renew(ctx context.Context, name string, t *accountToken) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, accountTimeout)
	defer cancel()
	token, life, err := RequestToken(ctx, s.client, s.namespace, name, accountTokenLife)
	if err == nil {
		t.value.Set(token)
	}
	return life, err
}

// keep renews a token each time that it is due, until Close.
func (s *ServiceAccounts) keep(name string, t *accountToken, life time.Duration) {
	for apiclient.Pause(s.ctx, life) {
		s.renewing.Lock()
		life, _ = s.renew(s.ctx, name, t) // after an error, the old token is still valid for a fifth of its life
		s.renewing.Unlock()
	}
}

// TokenRetry is the pause between a failed renewal of a token and the next attempt.
const TokenRetry = 5 * time.Second

// RequestToken requests a token of a ServiceAccount. life is the requested lifetime; the API server may grant a shorter
// or longer one. It returns the time after which to renew the token: 80% of its lifetime, as in a kubelet, or
// TokenRetry after an error.
func RequestToken(ctx context.Context, client kubernetes.Interface, namespace, account string, life time.Duration) (token string, renewAfter time.Duration, err error) {
	asked := time.Now()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(life.Seconds()))}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", TokenRetry, fmt.Errorf("create token of serviceaccount %s/%s: %w", namespace, account, err)
	}
	return answer.Status.Token, max(answer.Status.ExpirationTimestamp.Sub(asked)*8/10, TokenRetry), nil
}
