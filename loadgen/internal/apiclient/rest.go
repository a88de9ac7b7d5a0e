package apiclient

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// NewREST returns a client-go client for raw requests, and the HTTP client with its connections, which no other client shares.
// The client has no rate limit, because its delay would be measured as latency of the server.
func NewREST(cfg *rest.Config) (*rest.RESTClient, *http.Client, error) {
	own := rest.CopyConfig(cfg)
	own.QPS = -1
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	// With a separate dialer, client-go does not share connections with clients of an equal config.
	own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
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
