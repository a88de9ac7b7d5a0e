package run

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// breachOf says which limit of the cluster an error shows as reached, "" if none. The load can reach such a limit by itself, and
// what refuses then works as it should: that is an answer of the run, and no failure of its environment.
func breachOf(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "database space exceeded"):
		return "etcd's database reached its quota: writes are refused (raise quota-backend-bytes, write less, or compact and defragment)"
	case strings.Contains(text, "exceeded quota"):
		return "a ResourceQuota was reached: the API server refuses what is over it"
	case strings.Contains(text, "too many open files"):
		return "a component ran out of file descriptors"
	case apierrors.IsTooManyRequests(err) || strings.Contains(text, "429: "):
		return "the API server refuses requests with 429"
	}
	return ""
}
