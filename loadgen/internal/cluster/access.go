package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// checkAccess returns an error that names the permissions in `needs` that the user lacks, or nil if the user lacks
// none. `needs` must include the permissions of the load's identity, because RBAC lets users grant only permissions
// that they have.
func checkAccess(ctx context.Context, client kubernetes.Interface, needs []need) error {
	missing, err := missingAccess(ctx, client, needs)
	if err != nil || len(missing) == 0 {
		return err
	}
	return errors.New(lacking(missing))
}

func lacking(missing []string) string {
	return fmt.Sprintf("lacks permission to %s (a cluster-admin has all permissions; to check one, run `kubectl auth can-i VERB RESOURCE`)", strings.Join(missing, "; "))
}

func missingAccess(ctx context.Context, client kubernetes.Interface, needs []need) (missing []string, err error) {
	allowed, err := askAccess(ctx, client, needs)
	if err != nil {
		return nil, err
	}
	for i, n := range needs {
		if text := n.String(); !allowed[i] && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// askAccess asks the API server which permissions in `needs` the user has. The results are in the order of `needs`.
func askAccess(ctx context.Context, client kubernetes.Interface, needs []need) ([]bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no response within %s", requestTimeout))
	defer cancel()
	allowed := make([]bool, len(needs))
	err := load.Parallel(ctx, len(needs), func(ctx context.Context, i int) (err error) {
		allowed[i], err = mayI(ctx, client, needs[i])
		return err
	})
	if err != nil {
		if why := context.Cause(ctx); why != nil {
			err = why
		}
		return nil, fmt.Errorf("cannot list its own permissions: %w (does `kubectl auth can-i --list` work?)", err)
	}
	return allowed, nil
}

func mayI(ctx context.Context, client kubernetes.Interface, n need) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{}
	if n.url != "" {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: n.url, Verb: n.verb}
	} else {
		resource, sub, _ := strings.Cut(n.resource, "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
			Verb: n.verb, Group: n.group, Resource: resource, Subresource: sub, Namespace: n.namespace, Name: n.name,
		}
	}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
