package topology

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
	"github.com/stormglass/stormglass/controlplane/internal/service"
)

// service returns a component that runs a program of package service.
func (m maker) service(name string) *component {
	keys := m.layout.PKI()
	c := newComponent(name, control.ComponentKind(name), URL(m.ports[name]))
	c.set("secure-port", strconv.Itoa(m.ports[name]))
	c.set("tls-cert-file", keys.Cert(pki.Services))
	c.set("tls-private-key-file", keys.Key(pki.Services))
	c.set("client-ca-file", keys.Cert(pki.ClientCA))
	c.scrape(keys.Cert(pki.ServerCA), keys.Pair(pki.Scrape))
	return c
}

func (m maker) kmsPlugin(name string) *component {
	c := m.service(name)
	c.set("socket", m.layout.Socket(name))
	c.set("encryption-key-file", m.layout.PKI().EncryptionKeyFile())
	c.set("key-count-file", m.layout.PKI().KeyCount(control.KindKMSPlugin))
	return c
}

func (m maker) oidcIssuer(name string) *component {
	c := m.service(name)
	c.set("signing-key-dir", string(m.layout.PKI()))
	c.set("key-count-file", m.layout.PKI().KeyCount(control.KindOIDCIssuer))
	return c
}

func (m maker) tokenWebhook(name string) *component {
	c := m.service(name)
	c.set("token-file", m.layout.PKI().LoadToken())
	return c
}

// Webhooks returns the URLs of the webhooks that API servers find through a kubeconfig, by kind.
func (p Plan) Webhooks() map[string]string {
	urls := map[string]string{}
	for _, kind := range []string{control.KindTokenWebhook, control.KindAuthorizationWebhook, control.KindAuditWebhook} {
		for _, proc := range p.Of(kind) {
			urls[kind] = proc.Address + service.ReviewPath
		}
	}
	return urls
}

func (c *component) authenticate(cfg control.Config, l Layout) {
	const reason = "apiServer.authentication: "
	switch cfg.APIServer.Authentication {
	case control.AuthenticationBootstrapToken:
		c.setDeviation("enable-bootstrap-token-auth", "true", "false", reason+"the load uses a bootstrap token")
	case control.AuthenticationOIDC:
		c.setDeviation("authentication-config", l.Authentication(), "", reason+"the load uses a token of oidc-issuer")
	case control.AuthenticationWebhook:
		c.setDeviation("authentication-token-webhook-config-file", l.Kubeconfig(control.KindTokenWebhook), "", reason+"the load uses a token that token-webhook reviews")
		c.setDeviation("authentication-token-webhook-version", "v1", "v1beta1", reason+"token-webhook accepts reviews in v1")
	}
}

// AuthenticationConfig returns the content of the file Layout.Authentication. It makes API servers accept tokens of the
// issuer, in addition to service account tokens. authority is the CA certificate of the issuer, in PEM.
func AuthenticationConfig(issuer string, authority []byte) []byte {
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: %q, audiences: [%s], certificateAuthority: %q}
  claimMappings:
    username: {claim: sub, prefix: ""}
    groups: {claim: groups, prefix: ""}
`, issuer, service.Audience, authority)
}

func (c *component) authorize(cfg control.Config, l Layout) {
	if cfg.APIServer.AsksAuthorization() {
		c.setDeviation("authorization-config", l.Authorization(), "", "apiServer.authorization: API servers call authorization-webhook before RBAC")
		return
	}
	if cfg.APIServer.Authorization == control.AuthorizationABAC {
		c.setDeviation("authorization-mode", "Node,ABAC,RBAC", "AlwaysAllow", "apiServer.authorization: API servers check a policy file before RBAC")
		c.setDeviation("authorization-policy-file", l.ABACPolicy(), "", "apiServer.authorization: this policy file allows the load everything")
		return
	}
	c.setDeviation("authorization-mode", "Node,RBAC", "AlwaysAllow", "as in every production cluster")
}

// ABACPolicy returns the content of the file Layout.ABACPolicy, a policy that allows the load everything.
func ABACPolicy(cfg control.Config) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": %q, "apiGroup": "*", "namespace": "*", "resource": "*", "nonResourcePath": "*"}}
`, cfg.LoadUserName())
}

// authorizationConfig returns the content of the file Layout.Authorization, or nil if API servers do not call
// authorization-webhook. API servers call it for the load and for users that are neither the plane's nor Kubernetes'
// own, so that the plane works and can be measured even while API servers deny other requests.
func authorizationConfig(cfg control.Config, l Layout) []byte {
	if !cfg.APIServer.AsksAuthorization() {
		return nil
	}
	policy := "NoOpinion"
	if cfg.APIServer.Authorization == control.AuthorizationWebhookDeny {
		policy = "Deny"
	}
	own, _ := json.Marshal(pki.OwnUsers()) // cannot fail for strings
	condition := fmt.Sprintf("request.user == '%s' || !(request.user.startsWith('system:') || request.user in %s)",
		cfg.LoadUserName(), strings.ReplaceAll(string(own), `"`, "'"))
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {type: Node, name: node}
- type: Webhook
  name: %s
  webhook:
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %q}
    matchConditions:
    - expression: %q
- {type: RBAC, name: rbac}
`, control.KindAuthorizationWebhook, policy, l.Kubeconfig(control.KindAuthorizationWebhook), condition)
}
