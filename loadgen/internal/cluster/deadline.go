package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// DeadlineAnnotation is an annotation of the run's first namespace. Its value is the run's deadline, by the API
	// server's clock. After the deadline, any user may remove the run's objects. A run extends its deadline while it is
	// alive.
	DeadlineAnnotation = "stormglass.dev/deadline"
	// deadlineAfter is how far in the future a run sets its deadline. Other users may remove the run's objects only after the
	// API server or the run's machine has been down for about this time.
	deadlineAfter = 15 * time.Minute
	deadlineMove  = 3 * time.Minute
	deadlineRetry = 15 * time.Second
)

// deadline repeatedly extends the deadline of a run, an annotation of its first namespace, until its method `end` is
// called.
type deadline struct {
	client    kubernetes.Interface
	namespace string
	ahead     time.Duration // how far the API server's clock is ahead of this machine's clock
	moves     *background
}

func (d *deadline) text() string {
	return time.Now().Add(d.ahead + deadlineAfter).UTC().Format(time.RFC3339)
}

// keep extends the deadline in the background.
func (d *deadline) keep(ctx context.Context) {
	d.moves = repeat(ctx, deadlineMove, func(ctx context.Context) time.Duration {
		if d.move(ctx) != nil {
			return deadlineRetry
		}
		return deadlineMove
	})
}

func (d *deadline) move(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadlineRetry)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{DeadlineAnnotation: d.text()}}})
	if err != nil {
		return err
	}
	_, err = d.client.CoreV1().Namespaces().Patch(ctx, d.namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// end stops extending the deadline. It may be called again. On a nil deadline it does nothing.
func (d *deadline) end() {
	if d != nil {
		d.moves.end()
	}
}

// newDeadline returns the deadline of a run on a user's cluster. It returns nil on a bundled control plane, which stops
// at the end of the run.
func (t *Target) newDeadline(ctx context.Context, client kubernetes.Interface) *deadline {
	if t.Cluster.Bundled {
		return nil
	}
	return &deadline{client: client, namespace: t.Namespace, ahead: serverAhead(ctx, t.Admin)}
}

// owner returns an owner reference to the run's first namespace, for cluster-scoped objects. The garbage collector then
// removes these objects after the namespace.
func (t *Target) owner() []metav1.OwnerReference {
	if t.uid == "" {
		return nil
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: t.Namespace, UID: t.uid}}
}

func (t *Target) clusterMeta(name string) metav1.ObjectMeta {
	m := t.meta(name)
	m.OwnerReferences = t.owner()
	return m
}

// serverTime returns the API server's time, to the second.
func serverTime(ctx context.Context, cfg *rest.Config) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return time.Time{}, err
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return time.Time{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("/version").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16)) // lets the connection be reused
	_ = resp.Body.Close()
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("the API server's response has no valid Date header: %w", err)
	}
	return at, nil
}

// serverAhead returns how far the API server's clock is ahead of this machine's clock, to the second. It returns 0 for
// less than two seconds, or if the server does not send its time.
func serverAhead(ctx context.Context, cfg *rest.Config) time.Duration {
	asked := time.Now()
	at, err := serverTime(ctx, cfg)
	if err != nil {
		return 0
	}
	ahead := at.Sub(asked.Add(time.Since(asked) / 2))
	if ahead.Abs() < 2*time.Second { // the Date header has a resolution of one second
		return 0
	}
	return ahead
}
