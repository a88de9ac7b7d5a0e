package apiclient

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// NewREST returns a client-go client for raw requests, and its HTTP client. No other client shares its connections. It
// has no rate limit, because the loads would measure the limiter's delay as latency of the server.
func NewREST(cfg *rest.Config) (*rest.RESTClient, *http.Client, error) {
	own := rest.CopyConfig(cfg)
	own.QPS = -1
	own.UserAgent = cmp.Or(own.UserAgent, rest.DefaultKubernetesUserAgent()) // HTTPClientFor sets none
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	// client-go shares connections between clients with equal configurations, but not if a configuration has a Dial function.
	if own.Dial == nil {
		own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return nil, nil, fmt.Errorf("client: %w", err)
	}
	requests, err := rest.UnversionedRESTClientForConfigAndClient(own, client)
	if err != nil {
		return nil, nil, fmt.Errorf("client: %w", err)
	}
	return requests, client, nil
}

// Body returns the body of a response, or the error in the response. Result.Raw alone would lose the server's reason
// for a refusal.
func Body(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}
