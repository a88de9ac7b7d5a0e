package node

import (
	"cmp"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A kubelet requests a new token after 80% of the old one's lifetime or after a day, whichever is earlier, less a
// random jitter (pkg/kubelet/token).
const (
	tokenMaxAge = 24 * time.Hour
	tokenJitter = 10 * time.Second
)

// token is a service account token that a pod mounts.
type token struct {
	call call
	life time.Duration // requested lifetime; 0 means that the server chooses it and that the token is never refreshed
}

func tokensOf(pod *corev1.Pod) ([]token, error) {
	var out []token
	for _, v := range pod.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken == nil {
				continue
			}
			t, err := newToken(pod, s.ServiceAccountToken)
			if err != nil {
				return nil, err
			}
			out = append(out, t)
		}
	}
	return out, nil
}

func newToken(pod *corev1.Pod, p *corev1.ServiceAccountTokenProjection) (token, error) {
	r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: p.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if p.Audience != "" {
		r.Spec.Audiences = []string{p.Audience}
	}
	body, err := encode("authentication.k8s.io/v1", "TokenRequest", r)
	if err != nil {
		return token{}, err
	}
	t := token{call: call{
		verb: "create", resource: "serviceaccounts/token",
		path: "/api/v1/namespaces/" + pod.Namespace + "/serviceaccounts/" +
			url.PathEscape(cmp.Or(pod.Spec.ServiceAccountName, "default")) + "/token",
		body: body,
	}}
	if p.ExpirationSeconds != nil {
		t.life = time.Duration(*p.ExpirationSeconds) * time.Second
	}
	return t, nil
}

// fetchToken requests a pod's token, and retries after errors. It returns false if the pod ended first. On a restricted
// node it returns true without a token if the API server forbids the request, because such nodes may create tokens only
// in the run's namespaces.
func (k *kubelet) fetchToken(life *life, p *pod, t token) bool {
	failures := 0
	return k.until(life, p, func() time.Duration {
		_, err := k.link.do(life.ctx, t.call)
		if err == nil {
			k.refreshLater(life, p, t)
		}
		if err == nil || apierrors.IsForbidden(err) && k.plan.restricted() {
			return 0
		}
		failures++
		return life.backoff(podBackoff, podBackoffMax, failures)
	})
}

func (k *kubelet) refreshLater(life *life, p *pod, t token) {
	if t.life == 0 {
		return
	}
	age := min(t.life*4/5, tokenMaxAge) - time.Duration(life.float()*float64(tokenJitter))
	life.after(age, func() {
		k.mu.Lock()
		there := k.pods[p.uid] == p && p.state <= running
		k.mu.Unlock()
		if there {
			// Failures are counted. After a failure, the old token stays valid for a while.
			k.late(life, func() { _, _ = k.link.do(life.ctx, t.call) })
			k.refreshLater(life, p, t)
		}
	})
}
