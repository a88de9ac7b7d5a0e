package service

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
	kms "k8s.io/kms/pkg/service"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

func TestBehaviour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConduct(Behaviour{})
		if err := c.wait(t.Context()); err != nil {
			t.Errorf("wait without a fault = %v, want nil", err)
		}
		c.set(Behaviour{Delay: 2 * time.Second, Fails: true})
		begun := time.Now()
		if err := c.wait(t.Context()); !errors.Is(err, errFails) || time.Since(begun) != 2*time.Second {
			t.Errorf("wait of a slow and failing service = %v after %s, want errFails after 2s", err, time.Since(begun))
		}
		begun = time.Now()
		go func() {
			time.Sleep(time.Second)
			c.set(Behaviour{})
		}()
		if err := c.wait(t.Context()); err != nil || time.Since(begun) != time.Second {
			t.Errorf("wait during which the fault ends = %v after %s, want nil after 1s", err, time.Since(begun))
		}
		c.set(Behaviour{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait of a client that disconnects = %v, want context.DeadlineExceeded", err)
		}
	})
}

func serverIn(t *testing.T) (*server, pki.Dir) {
	t.Helper()
	keys := pki.Dir(t.TempDir())
	return newServer("test", flags{keyCount: keys.KeyCount("test"), signingKeys: string(keys)}), keys
}

// After a rotation, a plugin can still decrypt data that it encrypted with the previous key, even if it restarts.
func TestPluginRotates(t *testing.T) {
	s, keys := serverIn(t)
	secret, err := keys.EncryptionKey()
	if err != nil {
		t.Fatal(err)
	}
	p := &plugin{server: s, secret: secret}
	var written []*kms.EncryptResponse
	for range 2 {
		e, err := p.Encrypt(t.Context(), "uid", []byte("seed"))
		if err != nil {
			t.Fatal(err)
		}
		if status, err := p.Status(t.Context()); err != nil || status.KeyID != e.KeyID || status.Healthz != "ok" {
			t.Errorf("status = %+v, %v; want key %s", status, err, e.KeyID)
		}
		written = append(written, e)
		if err := keys.AddKey("test"); err != nil {
			t.Fatal(err)
		}
	}
	if written[0].KeyID == written[1].KeyID {
		t.Errorf("the rotation did not change the key %s", written[0].KeyID)
	}
	again := &plugin{server: s, secret: secret}
	for _, e := range written {
		plain, err := again.Decrypt(t.Context(), "uid", &kms.DecryptRequest{Ciphertext: e.Ciphertext, KeyID: e.KeyID})
		if string(plain) != "seed" || err != nil {
			t.Errorf("Decrypt with key %s = %q %v, want seed", e.KeyID, plain, err)
		}
	}
	if _, err := again.Decrypt(t.Context(), "uid", &kms.DecryptRequest{Ciphertext: written[0].Ciphertext, KeyID: "2"}); err == nil {
		t.Error("Decrypt with the wrong key returned no error")
	}
	s.conduct.set(Behaviour{Fails: true})
	if _, err := p.Status(t.Context()); !errors.Is(err, errFails) {
		t.Errorf("Status of a failing plugin = %v, want errFails", err)
	}
}

// The keys that the issuer publishes verify its tokens, until the keys are rotated.
func TestIssuer(t *testing.T) {
	s, keys := serverIn(t)
	i := &issuer{server: s, url: "https://issuer", keys: map[int]*ecdsa.PrivateKey{}}
	text, err := i.token(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.ParseSigned(text)
	if err != nil {
		t.Fatal(err)
	}
	verify := func() (claims jwt.Claims, err error) {
		set, err := i.keySet()
		if err != nil {
			t.Fatal(err)
		}
		return claims, token.Claims(set.Keys[0].Key, &claims)
	}
	if claims, err := verify(); err != nil || claims.Subject != control.LoadUser || claims.Issuer != i.url || !claims.Audience.Contains(Audience) {
		t.Errorf("claims = %+v, error %v; want the claims for the load", claims, err)
	}
	if err := keys.AddKey("test"); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(); err == nil {
		t.Error("a key verified a token that it did not sign")
	}
}

func TestTokenWebhook(t *testing.T) {
	s, keys := serverIn(t)
	s.flags.token = keys.LoadToken()
	if _, err := serveTokens(s); err == nil {
		t.Error("serveTokens without a token file returned no error")
	}
	for _, c := range []struct{ body, want string }{
		{`{"spec": {"token": "right"}}`, `"authenticated":true,"user":{"username":"stormglass-loadgen"`},
		{`{"spec": {"token": "wrong"}}`, `"status":{"user":{}}`},
		{`nothing`, "not a *v1.TokenReview"},
	} {
		s := newServer("test", flags{token: filepath.Join("testdata", "token")})
		if _, err := serveTokens(s); err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		s.mux.ServeHTTP(answer, verified(http.MethodPost, ReviewPath, c.body))
		if !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("response to %s = %s, want %s", c.body, answer.Body, c.want)
		}
	}
}

// Clients need a certificate of the plane, and only administrators may change a behaviour.
func TestClients(t *testing.T) {
	s, _ := serverIn(t)
	if _, err := serveAudit(s); err != nil {
		t.Fatal(err)
	}
	administrator := verified(http.MethodPut, BehaviourPath, `{"fails": true}`)
	administrator.TLS.PeerCertificates[0].Subject.Organization = []string{"system:masters"}
	stranger := verified(http.MethodPost, ReviewPath, "{}")
	stranger.TLS.VerifiedChains = nil
	for _, c := range []struct {
		what string
		ask  *http.Request
		want int
	}{
		{"a stranger", stranger, http.StatusUnauthorized},
		{"a client", verified(http.MethodPost, ReviewPath, "{}"), http.StatusOK},
		{"a client that is not an administrator", verified(http.MethodPut, BehaviourPath, "{}"), http.StatusForbidden},
		{"an administrator", administrator, http.StatusNoContent},
		{"a client of a failing service", verified(http.MethodPost, ReviewPath, "{}"), http.StatusInternalServerError},
		{"a look at its health", verified(http.MethodGet, HealthPath, ""), http.StatusOK},
		{"a scrape", verified(http.MethodGet, metricsPath, ""), http.StatusOK},
	} {
		answer := httptest.NewRecorder()
		s.mux.ServeHTTP(answer, c.ask)
		if answer.Code != c.want {
			t.Errorf("response to %s = %d %s, want %d", c.what, answer.Code, answer.Body, c.want)
		}
	}
}

// verified returns a request of a client with a certificate of the plane.
func verified(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	client := &x509.Certificate{Subject: pkix.Name{CommonName: "test"}}
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{client}, VerifiedChains: [][]*x509.Certificate{{client}}}
	return r
}

// Custom resources get the requested version and keep all other fields. The webhook refuses other requests with a
// reason.
func TestConversionWebhook(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{
			`{"kind": "ConversionReview", "request": {"uid": "u", "desiredAPIVersion": "a.example.com/v2", "objects": [{"apiVersion": "a.example.com/v1", "kind": "A", "spec": {"x": 1}}]}}`,
			`"convertedObjects":[{"apiVersion":"a.example.com/v2","kind":"A","spec":{"x":1}}],"result":{"metadata":{},"status":"Success"}`,
		},
		{`{"request": {"uid": "u", "objects": [{"spec": {}}]}}`, `"status":"Failure"`},
		{`{}`, `{}`},
		{`nothing`, "not a *v1.ConversionReview"},
	} {
		s := newServer("test", flags{})
		if _, err := serveConversion(s); err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		s.mux.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, control.ConversionPath, strings.NewReader(c.body)))
		if got := answer.Body.String(); !strings.Contains(got, c.want) {
			t.Errorf("response to %s = %s, want %s", c.body, got, c.want)
		}
	}
}
