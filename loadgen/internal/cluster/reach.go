package cluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/shell"
)

// Reach makes the check that a run makes first: whether the cluster of a kubeconfig
// answers, and accepts the credentials. tell is told what takes its time.
func Reach(ctx context.Context, k Kubeconfig, tell func(string)) (cfg *rest.Config, name string, err error) {
	t := new(Target)
	if _, _, err := t.reachFrom(ctx, k, tell); err != nil {
		return nil, "", err
	}
	return t.Admin, t.Cluster.Name, nil
}

// reachFrom makes the first requests to the cluster of a kubeconfig, which t becomes a
// target of, and returns a client and the name of its user.
func (t *Target) reachFrom(ctx context.Context, k Kubeconfig, tell func(string)) (client kubernetes.Interface, user string, err error) {
	if t.Admin, t.Cluster.Name, err = k.Config(); err != nil {
		return nil, "", err
	}
	t.Cluster.Server = t.Admin.Host
	if client, err = kubernetes.NewForConfig(t.Admin); err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %s (`kubectl --kubeconfig %s version` should say the same)", k.Files, oneLine(err), shell.Quote(k.Files))
	}
	if user, err = t.reachBounded(ctx, t.Admin, client, tell); err != nil {
		return nil, "", fmt.Errorf("cluster %s (%s): %w", t.Cluster.Name, t.Cluster.Server, explain(err))
	}
	return client, user, nil
}
