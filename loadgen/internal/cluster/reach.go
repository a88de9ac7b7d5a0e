package cluster

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Reach reads a kubeconfig, as Config does, and makes the check that a run makes
// first: whether the cluster answers, and accepts who we are.
func Reach(ctx context.Context, path, contextName string) (cfg *rest.Config, name string, err error) {
	if cfg, name, err = Config(path, contextName); err != nil {
		return nil, "", err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %s", path, oneLine(err))
	}
	if _, err := new(Target).reachBounded(ctx, cfg, client); err != nil {
		return nil, "", fmt.Errorf("cluster %s (%s): %w", name, cfg.Host, explain(err))
	}
	return cfg, name, nil
}
