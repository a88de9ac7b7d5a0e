package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/internal/httplimit"
	"github.com/stormglass/stormglass/internal/shell"
)

// Reach checks that the cluster of a kubeconfig answers and accepts the credentials. It is the first check of a run.
// During a long wait it calls `tell`.
func Reach(ctx context.Context, k Kubeconfig, tell func(string)) (cfg *rest.Config, name string, err error) {
	t := new(Target)
	if _, _, err := t.reachFrom(ctx, k, tell); err != nil {
		return nil, "", err
	}
	return t.Admin, t.Cluster.Name, nil
}

// reachFrom sets t's configuration from a kubeconfig and sends the first requests. It returns a client and the user's
// name.
func (t *Target) reachFrom(ctx context.Context, k Kubeconfig, tell func(string)) (client kubernetes.Interface, user string, err error) {
	if t.Admin, t.Cluster.Name, err = k.Config(); err != nil {
		return nil, "", err
	}
	t.Admin.Wrap(httplimit.Answers)
	t.Cluster.Server = t.Admin.Host
	if client, err = kubernetes.NewForConfig(t.Admin); err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %s (`kubectl --kubeconfig %s version` should show the same error)", k.Files, oneLine(err), shell.Quote(k.Files))
	}
	if user, err = t.reachBounded(ctx, t.Admin, client, tell); err != nil {
		return nil, "", fmt.Errorf("cluster %s (%s): %w", t.Cluster.Name, t.Cluster.Server, explain(t.proxyCause(ctx, err)))
	}
	return client, user, nil
}

// pluginTimeout is the time limit for an exec plugin of the kubeconfig, which may wait for a user or a cloud API.
// reachTimeout is the time limit for the responses to the first requests.
const (
	pluginTimeout = 30 * time.Second
	reachTimeout  = 10 * time.Second
)

var errNotKubernetes = errors.New("it does not answer like a Kubernetes API server (is this the address of an API server?)")

type pluginError struct {
	command string
	within  time.Duration
}

func (e *pluginError) Error() string {
	return fmt.Sprintf("the exec plugin of the kubeconfig has not ended within %s: %s (run the plugin by hand to see what it waits for)", e.within, e.command)
}

// plugin returns the command line of the exec plugin that provides the credentials, or nil if there is no plugin.
func plugin(cfg *rest.Config) []string {
	if cfg.ExecProvider == nil {
		return nil
	}
	return append([]string{cfg.ExecProvider.Command}, cfg.ExecProvider.Args...)
}

// reachBounded calls `reach` with the time limits pluginTimeout and reachTimeout. It calls `tell` on long waits.
func (t *Target) reachBounded(ctx context.Context, cfg *rest.Config, client kubernetes.Interface, tell func(string)) (user string, err error) {
	argv, who := plugin(cfg), "the cluster"
	command := strings.Join(argv, " ")
	if command != "" {
		who = "the exec plugin of the kubeconfig (" + command + ") and the cluster"
	}
	defer Waiting(tell, who+" to report the user name")()
	var seen string // set by the function below; do not read it before that function has ended
	err = bounded(ctx, command, pluginTimeout, reachTimeout, func(ctx context.Context) error {
		user, err := t.reach(ctx, client)
		if err == nil {
			seen = user
		}
		return err
	})
	if err == nil {
		return seen, nil
	}
	if argv != nil {
		err = errors.Join(err, endPlugin(argv))
	}
	return "", err
}

// bounded calls f, which sends requests. It gives up if the exec plugin takes longer than pluginWithin, or if the
// responses take longer than answerWithin. The plugin runs before the first request and ignores contexts, so f may
// still be running when `bounded` returns.
func bounded(ctx context.Context, plugin string, pluginWithin, answerWithin time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	connects := make(chan struct{})
	var once sync.Once
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GetConn: func(string) { once.Do(func() { close(connects) }) }})
	done := make(chan error, 1)
	go func() { done <- f(traced) }()
	if plugin != "" {
		select {
		case err := <-done:
			return err
		case <-connects:
		case <-time.After(pluginWithin):
			return &pluginError{plugin, pluginWithin}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case err := <-done:
		return err
	case <-time.After(answerWithin):
		cancel(context.DeadlineExceeded)
	case <-ctx.Done():
	}
	select { // the error of the client also says why its retries failed
	case err := <-done:
		return errors.Join(err, context.Cause(ctx))
	case <-time.After(lastWord):
		return context.Cause(ctx)
	}
}

// lastWord is how long `bounded` waits for the error of a request that it has canceled.
const lastWord = time.Second

// reach reads the version, which most users may read, and the user's name, which the server returns only for valid
// credentials.
func (t *Target) reach(ctx context.Context, client kubernetes.Interface) (user string, err error) {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := getJSON(ctx, client, "/version", &version); err != nil {
		return "", err
	}
	if version.GitVersion == "" {
		return "", errNotKubernetes
	}
	t.KubernetesVersion = version.GitVersion
	self, err := client.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "the user of the kubeconfig", nil // before Kubernetes 1.28
	case err != nil:
		return "", err
	}
	return self.Status.UserInfo.Username, nil
}

func getJSON(ctx context.Context, client kubernetes.Interface, path string, into any) error {
	data, err := client.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return errNotKubernetes
	}
	return nil
}
