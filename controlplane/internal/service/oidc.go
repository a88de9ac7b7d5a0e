package service

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	jose "gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

// keySetPath is the path of the issuer's public keys. TokenPath is the path of the tokens for the load, which only
// administrators may request. The issuer also serves the path of OpenID Connect Discovery.
const (
	keySetPath = "/keys"
	TokenPath  = "/token"
)

// Audience is the audience of the load's tokens.
const Audience = "stormglass"

// TokenLife is the time for which a token of the load is valid. It is longer than any run.
const TokenLife = 365 * 24 * time.Hour

// serveIssuer serves the OIDC discovery document, the newest public key, and tokens.
func serveIssuer(s *server) (func(context.Context) error, error) {
	i := &issuer{server: s, url: "https://" + s.address(), keys: map[int]*ecdsa.PrivateKey{}}
	if _, err := i.current(); err != nil {
		return nil, err
	}
	s.mux.Handle("GET /.well-known/openid-configuration", s.open("discovery", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{
			"issuer": i.url, "jwks_uri": i.url + keySetPath, "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{string(jose.ES256)},
		})
	}))
	s.mux.Handle("GET "+keySetPath, s.open("keys", func(w http.ResponseWriter, _ *http.Request) {
		set, err := i.keySet()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		writeJSON(w, set)
	}))
	s.mux.Handle("POST "+TokenPath, administrators(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		token, err := i.token(time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, token)
	})))
	return nil, nil
}

// issuer signs tokens with its newest key. A rotation creates a new key and drops the old one. API servers that have
// the new key set refuse tokens that were signed with the old key.
type issuer struct {
	server *server
	url    string

	mu   sync.Mutex // guards keys
	keys map[int]*ecdsa.PrivateKey
}

func (i *issuer) current() (jose.JSONWebKey, error) {
	id, err := pki.CountKeys(i.server.flags.keyCount)
	if err != nil {
		return jose.JSONWebKey{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys[id] == nil {
		key, err := pki.KeepKey(filepath.Join(i.server.flags.signingKeys, fmt.Sprintf("%s-%d.key", control.KindOIDCIssuer, id)))
		if err != nil {
			return jose.JSONWebKey{}, err
		}
		i.keys[id] = key
	}
	return jose.JSONWebKey{Key: i.keys[id], KeyID: strconv.Itoa(id), Algorithm: string(jose.ES256), Use: "sig"}, nil
}

func (i *issuer) keySet() (jose.JSONWebKeySet, error) {
	key, err := i.current()
	return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{key.Public()}}, err
}

func (i *issuer) token(now time.Time) (string, error) {
	key, err := i.current()
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: i.url, Subject: control.LoadUser, Audience: jwt.Audience{Audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(TokenLife)),
	}).Claims(map[string]any{"groups": []string{control.LoadGroup}}).CompactSerialize()
}
