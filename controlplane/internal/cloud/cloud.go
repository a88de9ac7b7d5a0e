// Package cloud is the cloud provider of cloud-controller-manager. For each operation, it calls the API of the simulated
// cloud (package service) over HTTPS. It does not cache or retry: the calling controller retries failed operations.
package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/api"

	"github.com/stormglass/stormglass/controlplane/control"
)

// requestTimeout is the time limit of one request, as in the SDKs of clouds.
const requestTimeout = 30 * time.Second

// Provider implements cloudprovider.Interface for the simulated cloud.
type Provider struct {
	url  string
	http *http.Client
}

var _ cloudprovider.Interface = (*Provider)(nil)

// New returns a provider that calls the API of the simulated cloud. A kubeconfig file names the server of that API.
func New(kubeconfig string) (*Provider, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	client, err := rest.HTTPClientFor(config)
	return &Provider{config.Host, client}, err
}

// Initialize does nothing, because this provider needs no preparation.
func (p *Provider) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {}

// ProviderName returns the prefix of providerIDs.
func (p *Provider) ProviderName() string { return control.ProviderName }

// HasClusterID returns true, because the whole cloud belongs to one cluster.
func (p *Provider) HasClusterID() bool { return true }

// LoadBalancer returns the implementation for the simulated cloud, as do InstancesV2 and Routes. InstancesV2 also
// provides the zones of nodes.
func (p *Provider) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return balancers{p}, true }
func (p *Provider) InstancesV2() (cloudprovider.InstancesV2, bool)   { return instances{p}, true }
func (p *Provider) Routes() (cloudprovider.Routes, bool)             { return routes{p}, true }

// Instances returns false, because InstancesV2 replaces it. Zones and Clusters also return false: InstancesV2 provides
// the zones, and there is only one cluster.
func (p *Provider) Instances() (cloudprovider.Instances, bool) { return nil, false }
func (p *Provider) Zones() (cloudprovider.Zones, bool)         { return nil, false }
func (p *Provider) Clusters() (cloudprovider.Clusters, bool)   { return nil, false }

var errNotFound = errors.New("the cloud has no object with this name")

// call sends a request with `in` as its body (nil means no body) and decodes the response into `out`. If the request
// exceeds the cloud's rate limit, call returns an api.RetryError with the time to wait. Only the service controller
// obeys this time.
func (p *Provider) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return err
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	switch {
	case resp.StatusCode/100 == 2:
		return json.Unmarshal(answer, out)
	case resp.StatusCode == http.StatusNotFound:
		return errNotFound
	}
	msg := fmt.Sprintf("%s %s: %s: %s", method, path, resp.Status, strings.TrimSpace(string(answer)))
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && resp.StatusCode == http.StatusTooManyRequests {
		return api.NewRetryError(msg, time.Duration(seconds)*time.Second)
	}
	return errors.New(msg)
}

func named(path, name string) string { return path + "/" + url.PathEscape(name) }
