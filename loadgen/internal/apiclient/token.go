package apiclient

import (
	"net/http"
	"sync/atomic"
)

// Token is a bearer token that can be replaced while requests use it.
type Token struct{ newest atomic.Pointer[string] }

// Set replaces the token.
func (t *Token) Set(token string) { t.newest.Store(&token) }

// Known reports whether a token has been set.
func (t *Token) Known() bool { return t.newest.Load() != nil }

// Get returns the current token, or "" if no token has been set.
func (t *Token) Get() string {
	if newest := t.newest.Load(); newest != nil {
		return *newest
	}
	return ""
}

// Wrap returns a RoundTripper that adds the current token to each request and passes the request to next.
func (t *Token) Wrap(next http.RoundTripper) http.RoundTripper { return bearer{t, next} }

type bearer struct {
	token *Token
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token.Get())
	return b.next.RoundTrip(r)
}
