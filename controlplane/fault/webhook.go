package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/fault/webhook"
)

// webhookNames begins the name of each registration.
const webhookNames = "stormglass-fault-"

// clearEvery is how often the removal of a registration is tried while the API
// server does not serve. Nobody waits for the webhook meanwhile: it allows
// everything at once.
const clearEvery = 100 * time.Millisecond

// slowWebhook registers a webhook. Its server outlives the fault by the second
// in which API servers hear of its end.
func (m *Manager) slowWebhook(ctx context.Context, f control.Fault) (effect, error) {
	hook, err := m.webhook(ctx, m.host.Kubeconfig(), webhook.Options{
		Name:     webhookNames + strings.ReplaceAll(f.Resource, ".", "-"), // one for each resource: see claims
		Resource: f.Resource, Delay: f.Delay, Jitter: f.Jitter, Fails: f.Fails, Ignore: f.Ignore,
		TimeoutSeconds: f.TimeoutSeconds, Seed: f.Seed,
	})
	if err != nil {
		return effect{}, err // it has undone what it did
	}
	return effect{undo: func(ctx context.Context) error {
		for {
			err := hook.Clear(ctx)
			if err == nil {
				break
			}
			select {
			case <-time.After(clearEvery):
			case <-ctx.Done():
				return err
			}
		}
		m.running.Go(func() { _ = hook.Close(m.life) }) // what it was for is gone
		return nil
	}}, nil
}

// registered is a webhook.Webhook.
type registered interface {
	Clear(context.Context) error
	Close(context.Context) error
}

func startWebhook(ctx context.Context, kubeconfig string, o webhook.Options) (registered, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return webhook.Start(ctx, config, o)
}

// Sweep removes the registrations of webhooks that a supervisor left in the
// plane's data when it was killed: nobody serves them, so what they are asked
// about would fail for good. Call it when a plane that resumes serves, before it
// takes faults. It gives the names of what it removed.
func Sweep(ctx context.Context, kubeconfig string) ([]string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	all := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	list, err := all.List(ctx, meta.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=stormglass"})
	if err != nil {
		return nil, fmt.Errorf("look for webhooks left by a fault: %w", err)
	}
	var removed []string
	var errs []error
	for _, left := range list.Items {
		if !strings.HasPrefix(left.Name, webhookNames) {
			continue
		}
		if err := all.Delete(ctx, left.Name, meta.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove the webhook %s, left by a fault: %w", left.Name, err))
			continue
		}
		removed = append(removed, left.Name)
	}
	return removed, errors.Join(errs...)
}
