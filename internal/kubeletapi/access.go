package kubeletapi

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The default values in a kubelet's configuration (pkg/kubelet/apis/config/v1beta1).
const (
	tokenTTL   = 2 * time.Minute
	allowedTTL = 5 * time.Minute
	deniedTTL  = 30 * time.Second
)

// access authenticates and authorizes requests like a kubelet in webhook mode.
type access struct {
	authenticator.Request
	authorizer authorizer.Authorizer
}

func newAccess(config *rest.Config, clientCA []byte) (*access, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ca, err := dynamiccertificates.NewStaticCAContent("client-ca", clientCA)
	if err != nil {
		return nil, err
	}
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
	authenticate, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: client.AuthenticationV1(), TokenAccessReviewTimeout: 10 * time.Second, WebhookRetryBackoff: backoff,
		CacheTTL: tokenTTL, ClientCertificateCAContentProvider: ca,
	}.New()
	if err != nil {
		return nil, err
	}
	authorize, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), WebhookRetryBackoff: backoff, AllowCacheTTL: allowedTTL, DenyCacheTTL: deniedTTL,
	}.New()
	return &access{authenticate, authorize}, err
}

// allowed reports whether a client may send a request to a node. If not, allowed sends an error response.
func (a *access) allowed(w http.ResponseWriter, r *http.Request, node string) bool {
	known, ok, err := a.AuthenticateRequest(r)
	if err != nil || !ok {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return false
	}
	var asked authorizer.AttributesRecord
	for _, subresource := range subresources(r.URL.Path) {
		asked = attributes(r, known.User, node, subresource)
		decision, _, err := a.authorizer.Authorize(r.Context(), asked)
		if err != nil {
			msg := fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=%s, subresource=%s)", asked.User.GetName(), asked.Verb, asked.Resource, subresource)
			http.Error(w, msg, http.StatusInternalServerError)
			return false
		}
		if decision == authorizer.DecisionAllow {
			return true
		}
	}
	msg := fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=%s, subresource(s)=%v)", asked.User.GetName(), asked.Verb, asked.Resource, subresources(r.URL.Path))
	http.Error(w, msg, http.StatusForbidden)
	return false
}

func attributes(r *http.Request, u user.Info, node, subresource string) authorizer.AttributesRecord {
	verbs := map[string]string{"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
	return authorizer.AttributesRecord{
		User: u, Verb: verbs[r.Method], APIVersion: "v1", Resource: "nodes", Subresource: subresource, Name: node,
		ResourceRequest: true, Path: r.URL.Path,
	}
}

// subresources returns the subresources of a Node to which a path belongs. A client that may use any of these
// subresources may use the path (pkg/kubelet/server/auth.go).
func subresources(path string) []string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch first {
	case "stats", "metrics":
		return []string{first}
	case "logs":
		return []string{"log"}
	case "pods", "runningpods":
		return []string{"pods", "proxy"}
	case "healthz", "configz":
		return []string{first, "proxy"}
	}
	return []string{"proxy"}
}
