package run

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// The receiver of spans requires a credential, and TLS if other machines can reach it.
func TestReceiverOfSpansIsNeverOpen(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile := file("tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	keyFile := file("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	token, empty, spaced := file("token", []byte("s3cret\n")), file("empty", []byte("\n")), file("spaced", []byte("a b"))
	for _, c := range []struct {
		s    SpanSources
		want string // part of the error; "": no error
	}{
		{SpanSources{Listen: "127.0.0.1:0", TokenFile: token}, ""},
		{SpanSources{Listen: "localhost:4317", TokenFile: token, Cert: certFile, Key: keyFile}, ""},
		{SpanSources{Listen: ":4317", ClientCA: certFile, Cert: certFile, Key: keyFile}, ""},
		{SpanSources{Listen: "[::]:4317", TokenFile: token, ClientCA: certFile, Cert: certFile, Key: keyFile}, ""},
		{SpanSources{Listen: "127.0.0.1:0"}, "must present a credential"},
		{SpanSources{Listen: ":4317", Cert: certFile, Key: keyFile}, "must present a credential"},
		{SpanSources{Listen: ":4317", TokenFile: token}, ":4317 is open to the network"},
		{SpanSources{Listen: "10.0.0.1:4317", TokenFile: token, Cert: certFile}, "--trace-cert and --trace-key must be used together"},
		{SpanSources{Listen: "127.0.0.1:0", TokenFile: token, Key: keyFile}, "--trace-cert and --trace-key must be used together"},
		{SpanSources{Listen: "127.0.0.1:0", ClientCA: certFile}, "--trace-client-ca requires TLS"},
		{SpanSources{Listen: "4317", TokenFile: token}, "--trace-listen: \"4317\" is not an address"},
		{SpanSources{Listen: "127.0.0.1:0", TokenFile: empty}, "must contain a token"},
		{SpanSources{Listen: "127.0.0.1:0", TokenFile: spaced}, "must contain a token"},
		{SpanSources{Listen: ":0", TokenFile: token, Cert: keyFile, Key: keyFile}, "--trace-cert"},
		{SpanSources{Listen: ":0", ClientCA: keyFile, Cert: certFile, Key: keyFile}, "must contain a certificate"},
		{SpanSources{TokenFile: token}, "--trace-token-file requires a receiver"},
	} {
		o, err := c.s.receiver()
		if c.want != "" {
			if !exitcode.IsUsage(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%+v: %v, want %q", c.s, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c.s, err)
			continue
		}
		verifies := o.TLS != nil && o.TLS.ClientAuth == tls.RequireAndVerifyClientCert && o.TLS.ClientCAs != nil
		if (o.TLS != nil) != (c.s.Cert != "") || verifies != (c.s.ClientCA != "") || (o.Token == "s3cret") != (c.s.TokenFile != "") || o.Token == "" && !verifies {
			t.Errorf("%+v: token %q, TLS %t, verifies client certificates %t", c.s, o.Token, o.TLS != nil, verifies)
		}
	}
}

// A run on a control plane that was started before needs a source of spans, as on a user's cluster.
func TestSourcesOfSpansOfASharedPlane(t *testing.T) {
	o := Options{Scenario: parse(t, "tracing: {sample: 5%}\n"+calm), Plane: t.TempDir()}
	if err := o.checkTracing(); !exitcode.IsUsage(err) || !strings.Contains(err.Error(), "requires a source of spans") {
		t.Error(err)
	}
	o.Spans.File = filepath.Join(o.Plane, "spans.jsonl")
	if err := os.WriteFile(o.Spans.File, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.checkTracing(); err != nil {
		t.Error(err)
	}
}
