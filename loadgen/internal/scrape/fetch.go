package scrape

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/loopback"
	"github.com/stormglass/stormglass/internal/userfile"
)

// maxBody is the maximum size of a /metrics response in bytes. An API server's response has a few megabytes.
const maxBody = 256 << 20

// statusError is the error for a response whose HTTP status is not 200.
type statusError int

func (e statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", int(e), http.StatusText(int(e))))
}

type fetch func(ctx context.Context, into *bytes.Buffer) error

// fetchHTTP returns a function that fetches a target's /metrics with the target's credentials. Its connections stay
// open between scrapes. The second returned function closes idle connections.
func fetchHTTP(t control.ScrapeTarget) (fetch, func(), error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" {
		return nil, nil, fmt.Errorf("%q is not the URL of a /metrics endpoint", t.URL)
	}
	config, err := tlsConfig(t)
	if err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: config,
		// On the loopback interface, compression would cost the measured component several times as much CPU time as
		// sending the uncompressed bytes.
		DisableCompression: loopback.Is(u.Hostname()),
		DialContext:        dialGathering,
		ReadBufferSize:     gatherBuffer,
	}
	if t.ProxyURL != "" {
		via, err := url.Parse(t.ProxyURL)
		if err != nil {
			return nil, nil, errors.New("proxyURL is not a URL") // the URL may contain a password
		}
		transport.Proxy = http.ProxyURL(via)
	}
	client := &http.Client{Transport: transport}
	return func(ctx context.Context, into *bytes.Buffer) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "text/plain;version=0.0.4")
		req.Header.Set("User-Agent", "stormglass-recorder")
		if t.TokenFile != "" {
			token, err := userfile.Read(t.TokenFile, userfile.Text) // for each scrape, because tokens are rotated
			if err != nil {
				return err
			}
			req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %w", t.URL, statusError(resp.StatusCode))
		}
		if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || kind != "text/plain" {
			return fmt.Errorf("GET %s: content type %q, want text/plain", t.URL, resp.Header.Get("Content-Type"))
		}
		n, err := into.ReadFrom(io.LimitReader(resp.Body, maxBody))
		if err == nil && n == maxBody {
			err = fmt.Errorf("GET %s: more than %d bytes", t.URL, maxBody)
		}
		return err
	}, transport.CloseIdleConnections, nil
}

func tlsConfig(t control.ScrapeTarget) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify, // the user sets it in a kubeconfig or targets file
	}
	if t.CAFile != "" {
		pem, err := userfile.Read(t.CAFile, userfile.Text)
		if err != nil {
			return nil, fmt.Errorf("read the CA of the server: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no PEM certificate", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read the client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// fetchOwn returns a function that encodes the generator's own metrics in the Prometheus text format.
func fetchOwn(g prometheus.Gatherer) fetch {
	return func(_ context.Context, into *bytes.Buffer) error {
		families, err := g.Gather()
		if err != nil {
			return err
		}
		enc := expfmt.NewEncoder(into, expfmt.NewFormat(expfmt.TypeTextPlain))
		for _, f := range families {
			if err := enc.Encode(f); err != nil {
				return err
			}
		}
		return nil
	}
}
