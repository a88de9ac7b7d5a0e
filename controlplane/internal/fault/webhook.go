package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/webhook"
)

// webhookNames is the prefix of the name of each registration. The fault's ID and the resource follow the prefix.
const webhookNames = "stormglass-fault-"

// clearEvery is the interval at which the manager retries to remove a registration while the API server does not serve.
const clearEvery = 100 * time.Millisecond

// lateWithin is how long the Manager looks for a registration that may still appear, and lateEvery is the interval of
// its checks. A request to register a webhook may take effect although the client got no response: for example, a
// paused etcd member holds the request and commits it when it continues.
const (
	lateWithin = 10 * time.Minute
	lateEvery  = 2 * time.Second
)

type webhooks interface {
	// serves reports whether clients can create objects of a resource.
	serves(ctx context.Context, resource string) (bool, error)
	// start registers the webhook of a fault and returns when the webhook is active. On an error, start undoes what it can.
	start(ctx context.Context, name string, f control.Fault) (registered, error)
	// remove removes a registration and reports whether the registration existed.
	remove(ctx context.Context, name string) (bool, error)
}

// registered contains the methods of webhook.Webhook that a Manager uses.
type registered interface {
	Clear(context.Context) error
	Close(context.Context) error
	Lost() bool
}

// webhookName returns the name of a registration. It cuts the name to 63 characters, because the name is also the value
// of a label, and some resources have longer names.
func webhookName(id, resource string) string {
	const most = 63
	name := webhookNames + id + "-" + strings.ReplaceAll(resource, ".", "-")
	return strings.TrimRight(name[:min(len(name), most)], "-")
}

func (m *Manager) slowWebhook(ctx context.Context, id string, f control.Fault, _ target) (effect, error) {
	hooks, err := m.webhooks(m.host.Kubeconfig())
	if err != nil {
		return effect{}, err
	}
	name := webhookName(id, f.Resource)
	hook, err := hooks.start(ctx, name, f)
	if errors.Is(err, webhook.ErrUncertain) {
		m.running.Go(func() { m.removeLate(hooks, name) })
	}
	if err != nil {
		return effect{}, err
	}
	return effect{undo: func(ctx context.Context) error {
		var failure error
		if wait.PollUntilContextCancel(ctx, clearEvery, true, func(ctx context.Context) (bool, error) {
			failure = hook.Clear(ctx)
			return failure == nil, nil
		}) != nil {
			return failure
		}
		m.running.Go(func() {
			_ = hook.Close(m.life) // the registration is already removed
			if hook.Lost() {
				m.removeLate(hooks, name)
			}
		})
		return nil
	}}, nil
}

// removeLate removes a webhook registration that appears after its fault has ended. No server responds for such a
// registration, so the requests that it matches would fail.
func (m *Manager) removeLate(hooks webhooks, name string) {
	_ = wait.PollUntilContextTimeout(m.life, lateEvery, lateWithin, true, func(ctx context.Context) (bool, error) {
		found, err := hooks.remove(ctx, name)
		return found && err == nil, nil
	})
}

type admin struct {
	config *rest.Config
	client *kubernetes.Clientset
}

func newAdmin(kubeconfig string) (admin, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return admin{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	return admin{config, client}, err
}

func apiServer(kubeconfig string) (webhooks, error) { return newAdmin(kubeconfig) }

func (a admin) start(ctx context.Context, name string, f control.Fault) (registered, error) {
	return webhook.Start(ctx, a.config, name, f)
}

func (a admin) remove(ctx context.Context, name string) (bool, error) {
	return webhook.Unregister(ctx, a.client, name)
}

// Sweep removes the registrations of webhooks that a killed supervisor has left in the plane's data. They have no
// server, so all requests that they match would fail. Sweep returns the names of the removed registrations.
func Sweep(ctx context.Context, kubeconfig string) ([]string, error) {
	a, err := newAdmin(kubeconfig)
	if err != nil {
		return nil, err
	}
	names, err := webhook.Registered(ctx, a.client)
	if err != nil {
		return nil, fmt.Errorf("look for webhooks left by a fault: %w", err)
	}
	var removed []string
	var errs []error
	for _, name := range names {
		if !strings.HasPrefix(name, webhookNames) {
			continue
		}
		if _, err := a.remove(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("remove the webhook %s, left by a fault: %w", name, err))
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(errs...)
}

// checkServed returns an error for a resource that the API server does not serve, such as "deployments" without its
// group. No request would ever match a webhook for such a resource.
func (m *Manager) checkServed(ctx context.Context, f control.Fault) error {
	hooks, err := m.webhooks(m.host.Kubeconfig())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	switch found, err := hooks.serves(ctx, f.Resource); {
	case err != nil:
		return fmt.Errorf("look up %s at the API server: %w", f.Resource, err)
	case !found:
		return &control.InvalidFault{Problems: []control.Problem{{
			Path: "resource", Msg: fmt.Sprintf("the API server does not serve %s, or does not allow creating them", f.Resource),
			Hint: `write the plural with its group, for example "deployments.apps"; to list the resources, run: controlplane kubectl api-resources`,
		}}}
	}
	return nil
}

// serves reports whether clients can create objects of a resource, such as "pods" or "deployments.apps", in any version
// of the resource's group.
func (a admin) serves(ctx context.Context, resource string) (bool, error) {
	name, group, grouped := strings.Cut(resource, ".")
	versions := []string{"/api/v1"}
	if grouped {
		var g meta.APIGroup
		if found, err := a.discover(ctx, "/apis/"+group, &g); !found || err != nil {
			return false, err
		}
		versions = nil
		for _, v := range g.Versions {
			versions = append(versions, "/apis/"+v.GroupVersion)
		}
	}
	for _, version := range versions {
		var list meta.APIResourceList
		if _, err := a.discover(ctx, version, &list); err != nil {
			return false, err
		}
		if slices.ContainsFunc(list.APIResources, func(r meta.APIResource) bool {
			return r.Name == name && slices.Contains(r.Verbs, "create")
		}) {
			return true, nil
		}
	}
	return false, nil
}

// discover decodes the response to a request for a path of the API server's discovery. found is false if the path does
// not exist.
func (a admin) discover(ctx context.Context, path string, into any) (found bool, err error) {
	data, err := a.client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(data, into)
}
