package cluster

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

const (
	// lockNamespace is the namespace of the lock. It exists in every cluster, and managed clusters let users write
	// there.
	lockNamespace = metav1.NamespaceDefault
	lockName      = "stormglass-run"
	// lockLife is how long a lock is valid without a renewal.
	lockLife  = 30 * time.Second
	lockRenew = 5 * time.Second
	lockPoll  = time.Second
	// holderAnnotation is the annotation that describes the holder of the lock to users.
	holderAnnotation = "stormglass.dev/holder"
)

func lockNeeds() []need {
	return each("create get update delete", "coordination.k8s.io", "leases", lockNamespace)
}

// Lock is a Lease that a run holds so that no two runs load a cluster at the same time. If the holder stops renewing
// the Lease, the next run takes it over. The next run does not compare clocks: it watches for changes of the Lease
// during one lease duration.
type Lock struct {
	client leases.LeaseInterface
	own    *coordinationv1.Lease // the last version of the Lease that this run wrote
	tell   func(string)
	ahead  time.Duration // how far the API server's clock is ahead of this machine's; only for the times in the Lease

	renewals *background

	mu    sync.Mutex
	taken string // describes the run that has taken over the lock; empty if none has
}

// LockOptions are the options of a Lock.
type LockOptions struct {
	// Scenario is the name of the scenario, for users who find the lock held.
	Scenario string
	// Over is the ID of a run whose lock this run may take even if that run still renews it. Empty means no run.
	Over string
	// Tell receives a line of text when the lock is lost.
	Tell func(string)
}

// HeldError means that another run holds the lock. Run is the ID of that run, and By describes it.
type HeldError struct{ Run, By string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("run %s already uses this cluster: %s (wait until that run ends; with `--take-lock %s` both run at the same time, which distorts both results)", e.Run, e.By, e.Run)
}

// Lock takes the cluster's lock for the run, or returns a HeldError if another run holds it. It takes over a lock that
// the holder no longer renews. Call Release on the returned Lock at the end.
func (t *Target) Lock(ctx context.Context, o LockOptions) (*Lock, error) {
	client, err := t.client()
	if err != nil {
		return nil, err
	}
	l := newLock(client, t.runID, o)
	l.ahead = serverAhead(ctx, t.Admin)
	if err := l.acquire(ctx, o.Over, t.waiting); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", t.Cluster.Name, err)
	}
	return l, nil
}

func newLock(client kubernetes.Interface, runID string, o LockOptions) *Lock {
	l := &Lock{client: client.CoordinationV1().Leases(lockNamespace), tell: o.Tell}
	l.own = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: lockName, Labels: Labels(runID), Annotations: map[string]string{holderAnnotation: holder(o.Scenario)},
	}}
	l.own.Labels[ManagedByLabel] = "stormglass"
	seconds := int32(lockLife / time.Second)
	l.own.Spec.HolderIdentity, l.own.Spec.LeaseDurationSeconds = &runID, &seconds
	return l
}

// holder describes the user, the machine and the scenario of this run, for the annotation of the lock.
func holder(scenario string) string {
	name, host := "an unknown user", "an unknown machine"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return fmt.Sprintf("scenario %s, started by %s on %s, process %d", scenario, name, host, os.Getpid())
}

func heldBy(lease *coordinationv1.Lease) *HeldError {
	e := &HeldError{By: lease.Annotations[holderAnnotation]}
	if lease.Spec.HolderIdentity != nil {
		e.Run = *lease.Spec.HolderIdentity
	}
	if e.By == "" {
		e.By = "lease " + lockName + " in namespace " + lockNamespace + " does not name the holder"
	}
	return e
}

// acquire takes the lock. If another run changes the Lease between acquire's read and write, acquire reads it again.
func (l *Lock) acquire(ctx context.Context, over string, waiting func(string) (done func())) error {
	for ctx.Err() == nil {
		err := l.create(ctx)
		if err == nil {
			l.keep(ctx)
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return lockError(err)
		}
		there, err := l.client.Get(ctx, lockName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return lockError(err)
		}
		by := heldBy(there)
		if by.Run != "" && by.Run != over {
			done := waiting(fmt.Sprintf("run %s, which holds the cluster's lock, to renew it (%s)", by.Run, by.By))
			renewed, err := l.renewed(ctx, there)
			done()
			switch {
			case err != nil:
				return lockError(err)
			case renewed && over != "":
				return fmt.Errorf("%w; --take-lock names run %s, which does not hold the lock", by, over)
			case renewed:
				return by
			}
		}
		err = l.replace(ctx, there)
		switch {
		case err == nil:
			l.keep(ctx)
			return nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return lockError(err)
		}
	}
	return context.Cause(ctx)
}

// renewed watches the lock of another run for the lease duration, and reports whether that run renewed it. It returns
// false if the lock was released in that time.
func (l *Lock) renewed(ctx context.Context, seen *coordinationv1.Lease) (bool, error) {
	life := lockLife
	if s := seen.Spec.LeaseDurationSeconds; s != nil && *s > 0 && time.Duration(*s)*time.Second < 10*lockLife {
		life = time.Duration(*s) * time.Second
	}
	for began := time.Now(); time.Since(began) < life; {
		if !apiclient.Pause(ctx, lockPoll) {
			return false, context.Cause(ctx)
		}
		now, err := l.client.Get(ctx, lockName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, err
		case now.ResourceVersion != seen.ResourceVersion || now.UID != seen.UID:
			return true, nil
		}
	}
	return false, nil
}

func (l *Lock) stamp() {
	now := metav1.NewMicroTime(time.Now().Add(l.ahead))
	l.own.Spec.RenewTime = &now
	if l.own.Spec.AcquireTime == nil {
		l.own.Spec.AcquireTime = &now
	}
}

func (l *Lock) create(ctx context.Context) error {
	l.stamp()
	l.own.ResourceVersion, l.own.UID = "", ""
	made, err := l.client.Create(ctx, l.own, metav1.CreateOptions{})
	if err == nil {
		l.own = made
	}
	return err
}

// replace overwrites the Lease `there` with the lock of this run, unless the Lease has changed since it was read.
func (l *Lock) replace(ctx context.Context, there *coordinationv1.Lease) error {
	l.stamp()
	l.own.ResourceVersion, l.own.UID = there.ResourceVersion, there.UID
	made, err := l.client.Update(ctx, l.own, metav1.UpdateOptions{})
	if err == nil {
		l.own = made
	}
	return err
}

// lockError returns an error that says why the lock cannot be taken, with a hint if permissions are missing.
func lockError(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return fmt.Errorf("cannot take its lock: %w (grant create, get, update and delete of leases.coordination.k8s.io in namespace %s, or add --no-lock)", err, lockNamespace)
	}
	return fmt.Errorf("cannot take its lock, lease %s in namespace %s: %w", lockName, lockNamespace, err)
}

func (l *Lock) keep(ctx context.Context) {
	l.renewals = repeat(ctx, lockRenew, func(ctx context.Context) time.Duration {
		if by := l.renew(ctx); by != nil {
			l.lose(by)
			return 0
		}
		return lockRenew
	})
}

func (l *Lock) lose(by *HeldError) {
	line := fmt.Sprintf("run %s took over the cluster's lock during this run (%s), so the results of both runs are distorted", by.Run, by.By)
	l.mu.Lock()
	l.taken = line
	l.mu.Unlock()
	if l.tell != nil {
		l.tell(line)
	}
}

// Taken describes the run that has taken over the lock. It returns "" if none has.
func (l *Lock) Taken() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// renew renews the lock, or creates it again if it was deleted. It returns the holder if another run has taken the lock. It
// ignores errors, because the next renewal tries again.
func (l *Lock) renew(ctx context.Context) *HeldError {
	ctx, cancel := context.WithTimeout(ctx, lockRenew)
	defer cancel()
	if l.own.ResourceVersion != "" { // otherwise the last attempt to create the Lease again failed
		if err := l.replace(ctx, l.own); err == nil || !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return nil
		}
	}
	there, err := l.client.Get(ctx, lockName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_ = l.create(ctx)
		return nil
	case err != nil:
		return nil
	}
	if by := heldBy(there); by.Run != *l.own.Spec.HolderIdentity {
		return by
	}
	l.own = there // the response to an earlier renewal was lost, or a user has edited the Lease
	return nil
}

// Release releases the lock. It may be called again. On a nil Lock it does nothing.
func (l *Lock) Release(ctx context.Context) error {
	if l == nil {
		return nil
	}
	l.renewals.end()
	if l.Taken() != "" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own == nil {
		return nil
	}
	there, err := l.client.Get(ctx, lockName, metav1.GetOptions{})
	if err == nil && heldBy(there).Run == *l.own.Spec.HolderIdentity {
		err = l.client.Delete(ctx, lockName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &there.UID, ResourceVersion: &there.ResourceVersion}})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("release the lock of the cluster: %w (it expires in %s)", err, lockLife)
	}
	l.own = nil
	return nil
}
