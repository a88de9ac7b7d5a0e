package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// Trace describes a run that has objects in a cluster.
type Trace struct {
	Run string
	// Expired means that the run is over: its deadline has passed, or its first namespace, which holds the deadline, no
	// longer exists.
	Expired bool
	// Why is the reason for the value of Expired.
	Why string
}

// Traces returns the runs that have objects in a cluster, sorted by id. It skips kinds that the user may not list, but
// fails if the user may not list namespaces.
func Traces(ctx context.Context, cfg *rest.Config) ([]Trace, error) {
	client, now, err := clientAndTime(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return traces(ctx, client, now)
}

// Alive returns the IDs of the runs that still renew the cluster's lock. It returns none if the user may not list locks.
func Alive(ctx context.Context, cfg *rest.Config) ([]string, error) {
	client, now, err := clientAndTime(ctx, cfg)
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{}
	if err := renewing(ctx, client, map[string]bool{}, alive, now); err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return slices.Sorted(maps.Keys(alive)), nil
}

// clientAndTime returns a client of a cluster, and the time of the API server's clock.
func clientAndTime(ctx context.Context, cfg *rest.Config) (kubernetes.Interface, time.Time, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, time.Time{}, err
	}
	now, err := serverTime(ctx, cfg)
	if err != nil {
		return nil, time.Time{}, explainCleanup(err)
	}
	return client, now, nil
}

func traces(ctx context.Context, client kubernetes.Interface, now time.Time) ([]Trace, error) {
	all, alive := map[string]bool{}, map[string]bool{}
	// Namespaces are listed last. A run that starts during these lists creates its namespace before its other objects,
	// so the list contains the namespace of every run whose objects were found.
	if err := labelled(ctx, client, all, alive, now); err != nil {
		return nil, err
	}
	first := map[string]*metav1.ObjectMeta{}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: RunLabel})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i].ObjectMeta
		run := m.Labels[RunLabel]
		all[run] = true
		if m.Name == namespaceOf(run) {
			first[run] = m
		}
	}
	var out []Trace
	for run := range all {
		t := Trace{Run: run}
		switch m := first[run]; {
		case alive[run]:
			t.Why = "it still runs, because it renews the cluster's lock"
		case m == nil:
			t.Expired, t.Why = true, "its namespace "+namespaceOf(run)+" is gone"
		default:
			t.Expired, t.Why = expiry(m.Annotations[DeadlineAnnotation], now)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Trace) int { return slices.Compare([]byte(a.Run), []byte(b.Run)) })
	return out, nil
}

// expiry reports whether a deadline has passed at the time `now`. `why` describes the result. A missing or invalid
// deadline counts as not passed.
func expiry(text string, now time.Time) (passed bool, why string) {
	at, err := time.Parse(time.RFC3339, text)
	switch {
	case text == "":
		return false, "it has no deadline (remove it with `loadgen cleanup --run ID`)"
	case err != nil:
		return false, fmt.Sprintf("its deadline %q is not a valid time (remove it with `loadgen cleanup --run ID`)", text)
	case now.After(at):
		return true, fmt.Sprintf("its deadline passed %s ago", now.Sub(at).Round(time.Second))
	}
	return false, fmt.Sprintf("its deadline is in %s", at.Sub(now).Round(time.Second))
}

// labelled finds runs by the labels of their cluster-scoped objects and locks, and adds their IDs to `all`. To `alive`
// it adds the runs that still renew a lock. It skips kinds that the user may not list.
func labelled(ctx context.Context, client kubernetes.Interface, all, alive map[string]bool, now time.Time) error {
	o := metav1.ListOptions{LabelSelector: RunLabel, Limit: 500}
	note := func(object runtime.Object) bool {
		if m, ok := object.(metav1.Object); ok {
			all[m.GetLabels()[RunLabel]] = true
		}
		return false
	}
	_, nodes := listed(ctx, "nodes", client.CoreV1().Nodes(), o, note)
	_, roles := listed(ctx, "clusterroles", client.RbacV1().ClusterRoles(), o, note)
	_, bindings := listed(ctx, "clusterrolebindings", client.RbacV1().ClusterRoleBindings(), o, note)
	for _, err := range []error{nodes, roles, bindings, renewing(ctx, client, all, alive, now)} {
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// renewing adds to `all` the IDs of the runs that have a lock, and to `alive` the IDs of the runs that still renew
// their lock.
func renewing(ctx context.Context, client kubernetes.Interface, all, alive map[string]bool, now time.Time) error {
	locks, err := client.CoordinationV1().Leases(lockNamespace).List(ctx, metav1.ListOptions{LabelSelector: RunLabel})
	if err != nil {
		return fmt.Errorf("list leases in namespace %s: %w", lockNamespace, err)
	}
	for _, l := range locks.Items {
		run := l.Labels[RunLabel]
		all[run] = true
		if at := l.Spec.RenewTime; at != nil && now.Sub(at.Time) < 2*lockLife {
			alive[run] = true
		}
	}
	return nil
}

func namespaceOf(runID string) string { return "stormglass-" + runID }

const expiredPoll = 30 * time.Second

// AwaitExpired waits until a run is over or has no objects left in the cluster. `why` says which of the two is true.
// AwaitExpired retries after errors until ctx ends.
func AwaitExpired(ctx context.Context, cfg *rest.Config, runID string, log func(string)) (why string, err error) {
	told := ""
	for {
		all, err := Traces(ctx, cfg)
		i := slices.IndexFunc(all, func(t Trace) bool { return t.Run == runID })
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err != nil:
			why = oneLine(err)
		case i < 0:
			return "it has no objects left", nil
		case all[i].Expired:
			return all[i].Why, nil
		default:
			why = "it is still running"
		}
		if why != told {
			told = why
			log(fmt.Sprintf("run %s: %s; checking again every %s", runID, why, expiredPoll))
		}
		if !apiclient.Pause(ctx, expiredPoll) {
			return "", context.Cause(ctx)
		}
	}
}
