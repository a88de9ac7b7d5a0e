package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Removed counts the objects that a cleanup removed.
type Removed struct {
	Namespaces, Pods, Nodes, Leases, CSINodes, ResourceSlices, Events, CertificateRequests, RBAC, Definitions int
	// ClusterObjects counts the cluster-scoped objects that actions created, and the DeviceClasses.
	ClusterObjects int
	// Unseen lists the kinds that the user may not list. Objects of these kinds may still exist.
	Unseen []string
	// Unanswered lists the API groups, as group/version, that did not answer, for example because an APIService has no
	// endpoints. Objects of these groups may still exist.
	Unanswered []string
	// DryRun reports whether the cleanup only counted the objects and removed nothing.
	DryRun bool
}

// Any reports whether anything was removed.
func (r Removed) Any() bool {
	return r.Namespaces+r.Pods+r.Nodes+r.Leases+r.CSINodes+r.ResourceSlices+r.Events+r.CertificateRequests+r.RBAC+r.Definitions+r.ClusterObjects > 0
}

// String returns the counts in one line.
func (r Removed) String() string {
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{
		{r.Namespaces, "namespace"}, {r.Pods, "pod"}, {r.Nodes, "node"}, {r.Leases, "lease"}, {r.CSINodes, "CSINode"}, {r.ResourceSlices, "ResourceSlice"}, {r.Events, "event"},
		{r.CertificateRequests, "certificate request"}, {r.RBAC, "RBAC object"}, {r.Definitions, "custom resource definition"},
		{r.ClusterObjects, "cluster object"},
	} {
		if x.n > 0 {
			parts = append(parts, count(x.n, x.what))
		}
	}
	line := "nothing to remove"
	if len(parts) > 0 {
		line = "removed " + strings.Join(parts, ", ")
		if r.DryRun {
			line = "would remove " + strings.Join(parts, ", ")
		}
	}
	if len(r.Unseen) > 0 {
		line += fmt.Sprintf(", as far as permitted (no permission to list %s)", strings.Join(r.Unseen, ", "))
	}
	if len(r.Unanswered) > 0 {
		line += fmt.Sprintf(", without the objects of %s (the API did not answer)", strings.Join(r.Unanswered, ", "))
	}
	return line
}

const (
	// CleanupBudget is the time limit of a cleanup. It leaves time for a restart of the API servers (up to a minute)
	// and for a slow namespace controller.
	CleanupBudget = 5 * time.Minute
	// namespaceWait is the maximum time for which one attempt waits until namespaces are gone. If some still exist, the
	// attempt continues with the other objects.
	namespaceWait = time.Minute
	// namespacePoll is the longest pause between two checks of the namespaces. Each check lists pods.
	namespacePoll = time.Second
	// closedAfter is the time from the deletion of a namespace until no API server accepts new objects in it. If the
	// namespace has no pods then, the cleanup does not search it for pods again.
	closedAfter = 3 * time.Second
	// requestTimeout is the timeout of each request, such as a list of 500 objects or a deletion.
	requestTimeout = 30 * time.Second
	// retryMax is the longest pause between attempts. The first pause is one second.
	retryMax = 10 * time.Second
	// tellEvery is the minimum interval between two messages that say why a cleanup has not finished.
	tellEvery = 30 * time.Second
)

// Cleanup removes the objects that `of` selects, and returns when all of them are gone. It finds objects by label or, if
// `of` contains UIDs, by UID. It deletes by UID, continues after errors, and retries until all are gone, ctx ends or
// CleanupBudget is over. It calls log at each step. The order is:
//
//  1. namespaces with their workloads and pods; Cleanup force-deletes
//     pods whose simulated kubelet no longer runs
//  2. nodes
//  3. other pods on those nodes (from DaemonSets that tolerate every taint)
//  4. the nodes' Leases, CSINodes and ResourceSlices, certificate requests, cluster-wide RBAC
//  5. other cluster-scoped objects, custom resource definitions, the cluster's lock
//  6. the namespaces of cleanup Jobs
func Cleanup(ctx context.Context, cfg *rest.Config, of Leftovers, log func(string)) (Removed, error) {
	c, err := wholeCleaner(cfg, of, log)
	if err != nil {
		return Removed{}, err
	}
	defer Waiting(log, "the cluster to remove the objects")()
	err = c.persist(ctx)
	return c.removed, err
}

// PreviewCleanup finds the objects that Cleanup would remove, and calls log with the names for each kind. It removes
// nothing. It does not list objects in the run's namespaces, because Cleanup removes them with the namespaces.
func PreviewCleanup(ctx context.Context, cfg *rest.Config, of Leftovers, log func(string)) (Removed, error) {
	c, err := wholeCleaner(cfg, of, log)
	if err != nil {
		return Removed{}, err
	}
	c.removed.DryRun = true
	err = c.attempt(ctx)
	return c.removed, err
}

// wholeCleaner returns a cleaner for every kind of object that runs create.
func wholeCleaner(cfg *rest.Config, of Leftovers, log func(string)) (*cleaner, error) {
	c, err := newCleaner(cfg, of.Run)
	if err != nil {
		return nil, err
	}
	c.except(of.Keep)
	if c.metadata, err = metadata.NewForConfig(cfg); err != nil {
		return nil, err
	}
	c.created, c.definitions, c.devices, c.locks, c.jobs = scenario.Creatables(), true, true, true, true
	c.discovery, c.made = c.client.Discovery(), &made{}
	if of.made != nil {
		c.made, c.nodePrefix = of.made, nodePrefix(of.Run)
	}
	c.log, c.notice = log, log
	return c, nil
}

// newCleaner creates a cleaner for the objects of one run, or of all runs if runID is "". To also remove devices,
// custom resource definitions and cluster-scoped objects of actions, the caller must set further fields.
func newCleaner(cfg *rest.Config, runID string) (*cleaner, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = requestTimeout
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return cleanerOf(client, runID), nil
}

func cleanerOf(client kubernetes.Interface, runID string) *cleaner {
	return &cleaner{
		client: client, runID: runID, owned: metav1.ListOptions{LabelSelector: ownedBy(runID), Limit: 500}, deleted: map[string]bool{},
		ofJobs: metav1.ListOptions{LabelSelector: selector(cleanupLabel, runID), Limit: 500},
	}
}

// except makes the cleaner keep the objects of the given runs.
func (c *cleaner) except(keep []string) {
	if c.keep = keep; len(keep) > 0 {
		c.owned.LabelSelector += fmt.Sprintf(",%s notin (%s)", RunLabel, strings.Join(keep, ","))
		c.ofJobs.LabelSelector += fmt.Sprintf(",%s notin (%s)", cleanupLabel, strings.Join(keep, ","))
	}
}

// cleaner removes the objects of one run or of all runs, with repeated attempts.
type cleaner struct {
	client      kubernetes.Interface
	metadata    metadata.Interface   // client for kinds without a typed client
	created     []scenario.Creatable // cluster-scoped kinds that actions create
	definitions bool                 // whether to also remove custom resource definitions
	devices     bool                 // whether to also remove ResourceSlices and DeviceClasses
	locks       bool                 // whether to also remove locks of the cluster
	jobs        bool                 // whether to also remove the cleanup Jobs of runs, after everything else
	ofJobs      metav1.ListOptions
	discovery   discovery.DiscoveryInterface // finds the run's other cluster-scoped objects; nil: do not remove these
	owned       metav1.ListOptions
	runID       string       // ID of the run whose objects to remove; "" for all runs
	keep        []string     // IDs of the runs whose objects the cleaner keeps
	made        *made        // UIDs of objects that the run created or an attempt found; nil: not recorded
	nodePrefix  string       // prefix of the names of the run's nodes; "" for no nodes
	log         func(string) // called with a line of text at each step; may be nil
	notice      func(string) // called with the reason for a wait; may be nil
	removed     Removed
	unseen      []string        // kinds that the user may not list, from all attempts
	deleted     map[string]bool // objects already counted in removed, by kind and UID (in a dry run by UID)
	nodesSeen   []item          // nodes that any attempt found; their names lead to their Leases and other objects
}

// persist repeats `attempt` until all objects are gone, ctx ends, CleanupBudget is over, or only missing permissions
// prevent the removal. It returns the last error that says why objects remain.
func (c *cleaner) persist(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, began.Add(CleanupBudget))
	defer cancel()
	if ctx.Err() != nil {
		return errors.New("not tried")
	}
	var last error
	var told time.Time
	for pause := time.Second; ; pause = min(2*pause, retryMax) {
		err := c.attempt(ctx)
		switch {
		case err == nil:
			return nil
		case last == nil || ctx.Err() == nil: // otherwise err only reports the end of ctx
			last = err
		}
		after := time.Since(began)
		if ctx.Err() != nil || onlyRefused(last) && after >= apiclient.RefusedBudget {
			return fmt.Errorf("%w (tried for %s)", last, after.Round(time.Second))
		}
		if time.Since(told) >= tellEvery {
			told = time.Now()
			c.say(c.notice, fmt.Sprintf("some objects could not be removed yet: %s; trying again for %s", strings.ReplaceAll(last.Error(), "\n", "; "), (CleanupBudget-after).Round(time.Second)))
		}
		apiclient.Pause(ctx, pause)
	}
}

func (c *cleaner) say(to func(string), line string) {
	if to != nil {
		to(line)
	}
}

// attempt tries once to remove all objects, and continues after errors. It stops early if the cluster cannot be reached
// or does not accept the credentials.
func (c *cleaner) attempt(ctx context.Context) error {
	c.removed.Unseen, c.removed.Unanswered = nil, nil
	err := c.relabel(ctx)
	if !unreachable(err) {
		err = errors.Join(err, c.namespaces(ctx))
	}
	switch {
	case unreachable(err):
		return explainCleanup(err)
	case apierrors.IsUnauthorized(err): // every other request would fail too
		return fmt.Errorf("the cluster does not accept the credentials: %w (have they expired?)", err)
	}
	err = errors.Join(err, c.nodes(ctx), c.ofNodes(ctx), c.removeDevices(ctx), c.nodeEvents(ctx), c.certificateRequests(ctx), c.rbac(ctx), c.clusterObjects(ctx), c.discovered(ctx), c.removeDefinitions(ctx), c.removeLocks(ctx))
	if err = errors.Join(err, c.removeMade(ctx)); err != nil {
		return err
	}
	return c.removeJobs(ctx)
}

// errNotGone means that objects still exist after their deletion was requested.
var errNotGone = errors.New("not gone yet")

func unreachable(err error) bool {
	return err != nil && !errors.As(err, new(apierrors.APIStatus)) && !errors.Is(err, errNotGone)
}

// onlyRefused reports whether every error joined in err means that permissions are missing or credentials are invalid.
func onlyRefused(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !onlyRefused(err) })
	}
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// explainCleanup returns a readable error for err, the error of a request that the cluster did not answer.
func explainCleanup(err error) error {
	if timedOut(err) {
		return fmt.Errorf("the cluster does not answer within %s", requestTimeout)
	}
	return fmt.Errorf("the cluster cannot be reached: %w", explain(err))
}

// remove deletes listed objects with `del`, and counts each object once in `removed`. It deletes an object only if the
// UID has not changed since the list. An object that is already gone is not an error. If an object cannot be deleted,
// remove continues with the next ones.
func (c *cleaner) remove(ctx context.Context, kind string, objects []item, removed *int, del deletion) error {
	if len(objects) == 0 {
		return nil
	}
	names := objects[0].name
	if len(objects) > 1 {
		names = fmt.Sprintf("%s ... %s", names, objects[len(objects)-1].name)
	}
	if c.removed.DryRun {
		c.say(c.log, count(len(objects), kind)+": "+names)
		for _, o := range objects {
			c.deleted[string(o.uid)] = true
		}
		*removed += len(objects)
		return nil
	}
	c.say(c.log, fmt.Sprintf("deleting %s: %s", count(len(objects), kind), names))
	refused := make([]error, len(objects))
	err := load.Parallel(ctx, len(objects), func(ctx context.Context, i int) error {
		err := del(ctx, objects[i], metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &objects[i].uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			refused[i] = fmt.Errorf("delete %s %s: %w", kind, objects[i].name, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", count(len(objects), kind), err)
	}
	for i, o := range objects {
		if key := strings.ToLower(kind) + " " + string(o.uid); refused[i] == nil && !c.deleted[key] {
			c.deleted[key] = true
			*removed++
		}
	}
	refused = slices.DeleteFunc(refused, func(err error) bool { return err == nil })
	switch len(refused) {
	case 0:
		return nil
	case 1:
		return refused[0]
	}
	return fmt.Errorf("%w (and %d more)", refused[0], len(refused)-1) // usually all have the same cause
}
