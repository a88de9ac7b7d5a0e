// Package remotewrite sends the samples of a run to a receiver of Prometheus' remote write protocol 1.0
// (https://prometheus.io/docs/specs/prw/remote_write_spec/): Mimir, Thanos Receive, or a Prometheus server with
// --web.enable-remote-write-receiver.
//
// The run's archive serves as the queue: a Sender reads unsent samples from the archive. Memory use is therefore
// limited, and no sample is lost while the receiver is slow or unavailable. A run waits for the Sender only at its end,
// for a limited time.
//
// client_golang's exp/api/remote sends the requests, retries them and honours Retry-After.
package remotewrite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"golang.org/x/net/http/httpguts"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
)

const (
	requestTimeout = 30 * time.Second
	firstRetry     = time.Second
	longestRetry   = 10 * time.Second
	// answerAtMost is the maximum number of bytes that the client reads of a response.
	answerAtMost = 1 << 10
)

// Config describes a receiver. It contains no secrets, only the names of files with secrets.
type Config struct {
	// URL is the URL to which the client posts samples, such as http://127.0.0.1:9090/api/v1/write. It must not contain
	// a user or password.
	URL string
	// HeaderFile is a file with one header per line, such as "X-Scope-OrgID: tenant". New reads it. Empty means no
	// headers.
	HeaderFile string
	// HTTPConfig is a file with credentials and TLS settings, in the format of promtool's --http.config.file. Empty
	// means no credentials.
	HTTPConfig string
	// Timeout is the time limit of a request; zero means 30 s.
	Timeout time.Duration
	// Retry is the wait before the first retry; zero means 1 s. Later waits grow to at most ten times this value.
	Retry time.Duration
	// Attempts is the maximum number of retries of a request; zero means no limit.
	Attempts int
}

// Client posts write requests.
type Client struct {
	api      *remote.API
	shown    string // URL for messages
	attempts int    // maximum number of retries; 0: no limit
}

// New returns the Client for a Config. It sends no request. Every error is a mistake of the user in the Config.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		shown := "the given text"
		if !strings.ContainsAny(c.URL, "@?") { // do not show a URL that may contain a password
			shown = fmt.Sprintf("%q", c.URL)
		}
		return nil, fmt.Errorf("%s is not the URL of a receiver (write http://HOST:9090/api/v1/write)", shown)
	case u.User != nil:
		return nil, errors.New("other users of this machine can read a URL with a password (put \"Authorization: Basic ...\" into a file, and name it with --remote-write-header-file)")
	}
	headers, err := readHeaders(c.HeaderFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.HeaderFile, err)
	}
	transport := http.DefaultTransport
	if c.HTTPConfig != "" {
		if transport, err = promimport.Transport(c.HTTPConfig); err != nil {
			return nil, err
		}
	}
	timeout, retry, longest := requestTimeout, firstRetry, longestRetry
	if c.Timeout > 0 {
		timeout = c.Timeout
	}
	if c.Retry > 0 {
		retry, longest = c.Retry, 10*c.Retry
	}
	api, err := remote.NewAPI(c.URL,
		remote.WithAPIPath(""), // the URL includes it
		remote.WithAPIHTTPClient(&http.Client{
			Timeout:   timeout,
			Transport: bounded{transport, headers},
			// Do not follow redirects: a redirected POST becomes a GET, whose response would look like success.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: retry, Max: longest, MaxRetries: c.Attempts}),
	)
	if err != nil {
		return nil, err
	}
	u.RawQuery, u.Fragment = "", ""
	return &Client{api, u.String(), c.Attempts}, nil
}

// URL returns the URL of the receiver without its query, for messages.
func (c *Client) URL() string { return c.shown }

// write posts one request and retries it until the receiver accepts or rejects it, or ctx ends. It calls retried before
// each retry, with the error of the failed attempt.
func (c *Client) write(ctx context.Context, request batch, retried func(error)) error {
	_, err := c.api.Write(ctx, remote.WriteV1MessageType, request, remote.WithWriteRetryCallback(retried))
	return err
}

// gaveUp reports whether retries is the maximum number of retries of a request (Config.Attempts).
func (c *Client) gaveUp(retries int) bool { return c.attempts > 0 && retries >= c.attempts }

// ownHeaders returns the headers that the protocol sets. The user must not set them.
func ownHeaders() []string {
	return []string{"Content-Type", "Content-Encoding", "Content-Length", "Host", "Transfer-Encoding", "X-Prometheus-Remote-Write-Version"}
}

// readHeaders reads a file with one header per line. Its errors never contain a value, because it may be a secret.
func readHeaders(file string) (http.Header, error) {
	headers := http.Header{}
	if file == "" {
		return headers, nil
	}
	text, err := userfile.Read(file, userfile.Text)
	if err != nil {
		return nil, err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, v, ok := strings.Cut(line, ":")
		name, v = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(v)
		switch {
		case !ok || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v):
			return nil, fmt.Errorf("line %d is not a header (write \"X-Scope-OrgID: tenant\", one per line)", n)
		case slices.Contains(ownHeaders(), name):
			return nil, fmt.Errorf("line %d: the protocol sets %s (remove it)", n, name)
		}
		headers.Add(name, v)
	}
	return headers, nil
}

// bounded adds headers to requests and limits responses to answerAtMost bytes. RoundTrip reads the response and returns
// any read error; the client then retries the request.
type bounded struct {
	inner   http.RoundTripper
	headers http.Header
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, all := range b.headers {
		r.Header[name] = all
	}
	r.Header.Set("User-Agent", "stormglass")
	resp, err := b.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerAtMost))
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}
