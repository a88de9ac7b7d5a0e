package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

// explain converts the error of a failed first request to one readable line, with a hint.
func explain(err error) error {
	var status apierrors.APIStatus
	var plugin *pluginError
	switch {
	case errors.As(err, &plugin):
		return plugin
	case errors.As(err, &status):
		return explainStatus(int(status.Status().Code), saidBy(status))
	case strings.Contains(err.Error(), "getting credentials: "):
		return fmt.Errorf("the exec plugin of the kubeconfig gave no credentials: %s (run the plugin by hand to see why)", afterLast(oneLine(err), "getting credentials: "))
	}
	if told := explainTLS(err); told != nil {
		return told
	}
	return explainNetwork(err)
}

// saidBy returns the message in a server's error response, even if the server is not a Kubernetes API server.
func saidBy(status apierrors.APIStatus) string {
	s := status.Status()
	text := s.Message
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Type == metav1.CauseTypeUnexpectedServerResponse && cause.Message != "" {
				text = cause.Message
			}
		}
	}
	if text = strings.Join(strings.Fields(text), " "); len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "..."
	}
	if text == "unknown" { // client-go's text for an unreadable response
		return ""
	}
	return text
}

// maxSaid is the maximum length of the part of a server's response that an error quotes. The response may be a whole
// web page.
const maxSaid = 120

func explainStatus(code int, text string) error {
	switch {
	case code == http.StatusUnauthorized:
		return errors.New("401 Unauthorized: it does not accept the credentials (have they expired?)")
	case code == http.StatusForbidden:
		return errors.New("403 Forbidden: the user of the kubeconfig is not allowed to read even the version (is this the right user, or does a proxy reject the request?)")
	case code == http.StatusNotFound:
		return errors.New("404 Not Found: there is no Kubernetes API at this address (is the port or path of server in the kubeconfig right?)")
	case code == http.StatusBadRequest && strings.Contains(text, "HTTP request to an HTTPS server"):
		return errors.New("it uses TLS, but server in the kubeconfig is an http:// address (write https://)")
	case code == http.StatusTooManyRequests:
		return errors.New("429 Too Many Requests: it is overloaded or still starting (try again in a moment)")
	}
	hint := "is this the address of an API server?"
	if code >= 500 {
		hint = "is its control plane up? check with `kubectl get --raw /readyz`"
	}
	if text != "" {
		text = ": " + text
	}
	return fmt.Errorf("%d %s%s (%s)", code, http.StatusText(code), text, hint)
}

func explainTLS(err error) error {
	var host x509.HostnameError
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return errors.New("the kubeconfig does not trust the authority that signed its certificate (is certificate-authority-data from another cluster?)")
	case errors.As(err, &host):
		return fmt.Errorf("%s (tls-server-name in the kubeconfig sets the name to verify)", oneLine(host))
	case errors.As(err, &verify):
		return fmt.Errorf("its certificate is not valid: %s (is this machine's clock right? has the cluster's certificate expired?)", oneLine(verify.Err))
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return errors.New("it uses HTTP without TLS (is this the port of an API server?)")
	case errors.As(err, new(tls.RecordHeaderError)):
		return errors.New("it does not use TLS (is this the port of an API server?)")
	case errors.As(err, &alert):
		return fmt.Errorf("it ended the TLS handshake: %s (does it accept the client certificate of the kubeconfig?)", oneLine(alert))
	}
	return nil
}

func explainNetwork(err error) error {
	var dns *net.DNSError
	var netErr net.Error
	var refused *apiclient.RefusedError
	switch {
	case errors.As(err, &refused) && refused.Code == http.StatusProxyAuthRequired:
		return fmt.Errorf("its proxy requires a user name and password: %w (set proxy-url in the kubeconfig, or HTTPS_PROXY, to http://USER:PASSWORD@HOST:PORT)", refused)
	case errors.As(err, &refused) && refused.Code >= 500:
		return fmt.Errorf("its proxy cannot reach it: %w (is the cluster up? is the address right?)", refused)
	case errors.As(err, &refused):
		return fmt.Errorf("its proxy refuses to connect: %w (does the proxy permit this address and port? NO_PROXY excludes addresses from HTTPS_PROXY)", refused)
	case ofProxy(err) != nil:
		return fmt.Errorf("its proxy cannot be used: %s (proxy-url in the kubeconfig or HTTPS_PROXY sets the proxy)", oneLine(ofProxy(err)))
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused (is the cluster up? is the address right?)")
	case errors.As(err, &dns):
		return fmt.Errorf("no such host %s (is the address right? is the VPN up?)", dns.Name)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return errors.New("there is no route to it (is the address right? is the VPN up?)")
	case errors.Is(err, h2conn.ErrNoHTTP2):
		return errors.New("it does not offer HTTP/2, which loads and simulated nodes use (does a gateway or proxy terminate TLS?)")
	case closed(err):
		return errors.New("it closed the connection without a response (is this the port of an API server?)")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return fmt.Errorf("no response within %s (does a firewall or VPN block the connection?)", reachTimeout)
	case strings.Contains(err.Error(), "unsupported protocol scheme"):
		return errors.New("its address is not an https:// URL (write https:// in server)")
	case errors.Is(err, context.Canceled), errors.Is(err, errNotKubernetes):
		return err
	}
	return fmt.Errorf("%s (is the address right? is there a proxy?)", oneLine(err))
}

// ofProxy returns the part of err that came from a proxy, or nil if err did not come from a proxy.
func ofProxy(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks")) {
		return op.Err
	}
	return nil
}

// closed reports whether a connection was closed without a response. It also recognizes the text of client-go's errors,
// because they do not wrap the cause.
func closed(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return true
	}
	_, before, again := strings.Cut(oneLine(err), "error from a previous attempt: ")
	return again && (strings.Contains(before, "EOF") || strings.Contains(before, syscall.ECONNRESET.Error()))
}

func afterLast(s, sep string) string { return s[strings.LastIndex(s, sep)+len(sep):] }
