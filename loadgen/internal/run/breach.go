package run

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// breachOf describes the limit of the cluster, such as etcd's quota, that caused err. It returns "" for other errors.
// Reaching a limit is a result of the run, not a failure of its environment, because the component that refuses
// requests works correctly.
func breachOf(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "database space exceeded"):
		return "etcd's database reached its quota: writes are refused (raise quota-backend-bytes, write less, or compact and defragment)"
	case strings.Contains(text, "exceeded quota"):
		return "a ResourceQuota was reached: the API server refuses requests that exceed it"
	case strings.Contains(text, "too many open files"):
		return "a component ran out of file descriptors"
	case apierrors.IsTooManyRequests(err) || strings.Contains(text, "429: "):
		return "the API server refuses requests with 429"
	}
	return ""
}

type hintedError struct {
	error
	hint string
}

func (e hintedError) Error() string { return e.error.Error() + " (" + e.hint + ")" }
func (e hintedError) Unwrap() error { return e.error }

// hinted adds a hint to a well-known error message of a library. It returns other errors unchanged, and also errors that
// already end with a hint in parentheses.
func hinted(err error) error {
	if err == nil || strings.HasSuffix(err.Error(), ")") || errors.As(err, new(hintedError)) {
		return err
	}
	text := err.Error()
	if apierrors.IsUnauthorized(err) {
		text = "asked for the client to provide credentials"
	}
	for _, known := range [...]struct{ words, hint string }{
		{"asked for the client to provide credentials", "the credentials are not valid for this API server, or have expired: renew them in your kubeconfig and run again; for a bundled control plane, see kube-apiserver's log in the run's directory"},
		{"context deadline exceeded", "the request took too long, because the API server is overloaded or the machine is busy: see the components' logs, lower the load, or use an idle machine"},
		{"would exceed context deadline", "the request took too long, because the API server is overloaded or the machine is busy: see the components' logs, lower the load, or use an idle machine"},
		{"connection refused", "nothing listens at this address: check that the component is running, and see its log"},
		{"no such host", "this machine cannot resolve the server's name: check the address in your kubeconfig, and DNS"},
	} {
		if strings.Contains(text, known.words) {
			return hintedError{err, known.hint}
		}
	}
	return err
}
