package apiclient

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// NewREST makes a client-go client for raw requests, without a rate limit, because a delay in the client would be
// measured as the server's. It returns the client and the HTTP client that holds its own connections.
func NewREST(cfg *rest.Config) (*rest.RESTClient, *http.Client, error) {
	own := rest.CopyConfig(cfg)
	own.QPS = -1
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	// A separate dialer keeps client-go from sharing the connection of an equal config.
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
