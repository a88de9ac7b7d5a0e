package run

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/internal/spans/otlp"
)

// SpanSources say where a run on a user's cluster gets the spans of its API servers and etcd. If the run traces requests,
// it requires Listen, File or both. Other runs must leave all fields empty.
type SpanSources struct {
	// Listen is the address, HOST:PORT, at which the run receives spans with OTLP/gRPC; empty means no receiver.
	Listen string
	// Cert and Key are PEM files with the receiver's certificate and key. Without them, the receiver does not encrypt
	// its connections, and Listen must be a loopback address.
	Cert, Key string
	// TokenFile is a file with the bearer token that senders must present. ClientCA is a PEM file with the CA for the
	// certificates that senders must present; it requires Cert. A receiver requires at least one of the two.
	TokenFile, ClientCA string
	// File is a file to which an OpenTelemetry Collector appends spans as OTLP/JSON, one TracesData per line. The run
	// reads only the lines appended after its start. Empty means no file.
	File string
}

// used returns the name of the first flag whose field is set, without dashes. It returns "" if all fields are empty.
func (s SpanSources) used() string {
	for _, f := range [...]struct{ flag, value string }{
		{"trace-listen", s.Listen}, {"trace-file", s.File}, {"trace-cert", s.Cert}, {"trace-key", s.Key}, {"trace-token-file", s.TokenFile}, {"trace-client-ca", s.ClientCA},
	} {
		if f.value != "" {
			return f.flag
		}
	}
	return ""
}

// checkTracing returns an error if the run cannot get the spans of its traced requests, or if a field of o.Spans would have
// no effect.
func (o Options) checkTracing() error {
	used, own := o.Spans.used(), !o.startsPlane()
	switch {
	case traced(o.Scenario) == 0 && used != "":
		return exitcode.Usagef("--%s requires --trace (add --trace, or leave out --%s)", used, used)
	case traced(o.Scenario) == 0:
		return nil
	case o.Workers.Count > 0:
		return exitcode.Usagef("tracing.sample: workers cannot trace requests (run without workers, or without --trace)")
	case !own && used != "":
		return exitcode.Usagef("--%s: requires --kubeconfig FILE, because a run on a bundled control plane always receives its spans", used)
	case !own:
		return nil
	case o.Spans.Listen == "" && o.Spans.File == "":
		return exitcode.Usagef("--trace with your own cluster requires a source of spans (add --trace-listen HOST:PORT or --trace-file FILE)")
	}
	if o.Spans.File != "" {
		tail, err := spans.OpenTail(o.Spans.File)
		if err != nil {
			return exitcode.Usagef("--trace-file %s: %w", o.Spans.File, err)
		}
		_ = tail.Close()
	}
	_, err := o.Spans.receiver()
	return exitcode.UsageError(err)
}

// receiver returns the receiver's TLS configuration and token. It fails if the receiver would accept senders without
// credentials, or connections over the network without encryption.
func (s SpanSources) receiver() (o otlp.Options, err error) {
	if s.Listen == "" {
		if used := (SpanSources{Cert: s.Cert, Key: s.Key, TokenFile: s.TokenFile, ClientCA: s.ClientCA}).used(); used != "" {
			return o, exitcode.Usagef("--%s requires a receiver (add --trace-listen HOST:PORT)", used)
		}
		return o, nil
	}
	if err := loopback.Check(s.Listen, true); err != nil {
		return o, exitcode.Usagef("--trace-listen: %w", err)
	}
	host, _, _ := net.SplitHostPort(s.Listen)
	switch {
	case (s.Cert == "") != (s.Key == ""):
		return o, exitcode.Usagef("--trace-cert and --trace-key must be used together (add the missing one)")
	case s.Cert == "" && !loopback.Is(host):
		return o, exitcode.Usagef("--trace-listen: %s is open to the network, which requires TLS (add --trace-cert FILE and --trace-key FILE)", s.Listen)
	case s.TokenFile == "" && s.ClientCA == "":
		return o, exitcode.Usagef("--trace-listen: senders of spans must present a credential (add --trace-token-file FILE or --trace-client-ca FILE)")
	case s.ClientCA != "" && s.Cert == "":
		return o, exitcode.Usagef("--trace-client-ca requires TLS (add --trace-cert FILE and --trace-key FILE)")
	}
	if s.TokenFile != "" {
		token, err := read("trace-token-file", s.TokenFile)
		if err != nil {
			return o, err
		}
		o.Token = string(bytes.TrimSpace(token))
		if o.Token == "" || bytes.ContainsFunc([]byte(o.Token), func(r rune) bool { return r <= ' ' || r > '~' }) {
			return o, exitcode.Usagef("--trace-token-file %s: must contain a token of printable characters without spaces", s.TokenFile)
		}
	}
	if s.Cert != "" {
		o.TLS, err = s.tls()
	}
	return o, err
}

func (s SpanSources) tls() (*tls.Config, error) {
	cert, err := read("trace-cert", s.Cert)
	if err != nil {
		return nil, err
	}
	key, err := read("trace-key", s.Key)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, exitcode.Usagef("--trace-cert %s: %w", s.Cert, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if s.ClientCA == "" {
		return c, nil
	}
	ca, err := read("trace-client-ca", s.ClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(ca) {
		return nil, exitcode.Usagef("--trace-client-ca %s: must contain a certificate in PEM form", s.ClientCA)
	}
	return c, nil
}

func read(flag, path string) ([]byte, error) {
	data, err := userfile.Read(path, userfile.Text)
	if err != nil {
		return nil, exitcode.Usagef("--%s %s: %w", flag, path, err)
	}
	return data, nil
}
