package request

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// Templates creates the request templates of a load. A template contains the encoded headers of the load's identity and
// of one kind of request. Operations must call Renew in their method Background.
type Templates struct {
	to *apiclient.Endpoint

	mu       sync.Mutex
	identity http.Header
	handles  []*Template
}

// Template is a request template. Templates.Renew updates it when the headers of the identity change.
type Template struct {
	request h2conn.Request // the request without the headers of the identity
	extra   http.Header
	current atomic.Pointer[h2conn.Template]
}

// Load returns the current encoded headers, for Request.Template.
func (t *Template) Load() *h2conn.Template { return t.current.Load() }

// NewTemplates returns Templates for the identity in the target's configuration. It fails if the target's
// configuration is invalid.
func NewTemplates(t load.Target) (*Templates, error) {
	to, err := apiclient.New(t.Config, &apiclient.Roots{})
	if err != nil {
		return nil, err
	}
	s := &Templates{to: to}
	return s, s.renew()
}

// Prefix returns the prefix of all paths, for an API server behind a gateway. It never ends with a slash.
func (s *Templates) Prefix() string { return s.to.Prefix }

// Endpoint returns the address and the credentials of the identity.
func (s *Templates) Endpoint() *apiclient.Endpoint { return s.to }

// New returns a new template. If accept or contentType is empty, the header is omitted. Headers in extra replace
// headers of the identity.
func (s *Templates) New(method, accept, contentType string, extra http.Header) *Template {
	return s.NewAs("", method, accept, contentType, extra)
}

// NewAs is like New, but also sets the User-Agent. If agent is empty, the User-Agent of the configuration is used.
func (s *Templates) NewAs(agent, method, accept, contentType string, extra http.Header) *Template {
	t := &Template{
		request: h2conn.Request{Method: method, Accept: accept, ContentType: contentType, UserAgent: cmp.Or(agent, s.to.Agent)},
		extra:   extra.Clone(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.remake(s.identity)
	s.handles = append(s.handles, t)
	return t
}

func (t *Template) remake(identity http.Header) {
	r := t.request
	r.Extra = http.Header{}
	for _, from := range []http.Header{identity, t.extra} {
		for name, values := range from {
			r.Extra[http.CanonicalHeaderKey(name)] = slices.Clone(values)
		}
	}
	t.current.Store(h2conn.NewTemplate(r))
}

// Renew regularly renews the headers of the identity until ctx ends. If a renewal fails, the old headers stay in use,
// and the load measures the 401 responses.
func (s *Templates) Renew(ctx context.Context) {
	for apiclient.Pause(ctx, apiclient.RenewEvery) {
		_ = s.renew()
	}
}

func (s *Templates) renew() error {
	identity, err := s.to.Headers() // not under the lock, because a credential plugin may take seconds
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if reflect.DeepEqual(identity, s.identity) {
		return nil
	}
	s.identity = identity
	for _, t := range s.handles {
		t.remake(identity)
	}
	return nil
}
