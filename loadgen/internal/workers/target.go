package workers

import (
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// target is the form of a load.Target that the coordinator sends to a worker.
type target struct {
	Host        string                   `json:"host"`
	APIPath     string                   `json:"apiPath,omitempty"`
	TLS         rest.TLSClientConfig     `json:"tls"`
	Token       string                   `json:"token,omitempty"`
	UserAgent   string                   `json:"userAgent,omitempty"`
	Impersonate rest.ImpersonationConfig `json:"impersonate"`
	Plain       bool                     `json:"plain,omitempty"` // whether to disable compression

	Namespace    string              `json:"namespace,omitempty"`
	Namespaces   []string            `json:"namespaces,omitempty"`
	Labels       map[string]string   `json:"labels,omitempty"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
	Seed         int64               `json:"seed"`
}

// targetOf returns the target to send to a worker. It reads key and token files, because the worker does not have these
// files. If api is not nil, its address and CA replace those in t.
func targetOf(t load.Target, api *API) (target, error) {
	c := rest.CopyConfig(t.Config)
	if api != nil {
		c.Host, c.Dial, c.Proxy = api.Host, nil, nil
		c.CAFile, c.CAData, c.ServerName, c.Insecure = "", api.CA, "", false
	}
	switch {
	case c.ExecProvider != nil, c.AuthProvider != nil:
		return target{}, errors.New("workers cannot run the credential plugin of the load's identity")
	case c.Dial != nil, c.Proxy != nil:
		return target{}, errors.New("this machine reaches the cluster through a proxy, which workers cannot use (run from a machine that reaches the cluster directly)")
	}
	if err := rest.LoadTLSFiles(c); err != nil {
		return target{}, fmt.Errorf("read the TLS files of the load's identity: %w", err)
	}
	c.CAFile, c.CertFile, c.KeyFile = "", "", ""
	token, err := tokenOf(t.Config)
	if err != nil {
		return target{}, err
	}
	return target{
		Host: c.Host, APIPath: c.APIPath, TLS: c.TLSClientConfig, Token: token, UserAgent: c.UserAgent,
		Impersonate: c.Impersonate, Plain: c.DisableCompression,
		Namespace: t.Namespace, Namespaces: t.Namespaces, Labels: t.Labels, NodeSelector: t.NodeSelector, Tolerations: t.Tolerations, Seed: t.Seed,
	}, nil
}

// tokenOf returns the current bearer token of a client configuration, or "".
func tokenOf(c *rest.Config) (string, error) {
	if c.BearerTokenFile == "" {
		return c.BearerToken, nil
	}
	text, err := os.ReadFile(c.BearerTokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token of the load's identity: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// config returns the client configuration for a worker. Each request carries the current value of token.
func (t target) config(token *apiclient.Token) *rest.Config {
	c := &rest.Config{
		Host: t.Host, APIPath: t.APIPath, TLSClientConfig: t.TLS, UserAgent: t.UserAgent, Impersonate: t.Impersonate,
		DisableCompression: t.Plain, QPS: -1,
	}
	if t.Token != "" {
		token.Set(t.Token)
		c.Wrap(token.Wrap)
	}
	return c
}
