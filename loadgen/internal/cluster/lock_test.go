package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/internal/stubapi"
)

func waitsFor(string) (done func()) { return func() {} }

// contest runs a test in virtual time against a stub API server that assigns resource versions.
func contest(t *testing.T, f func(t *testing.T, client kubernetes.Interface)) {
	synctest.Test(t, func(t *testing.T) {
		server, err := stubapi.Start(stubapi.Options{Listener: stubapi.NewPipes(), NoRecord: true})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		client, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		f(t, client)
	})
}

func locked(t *testing.T, client kubernetes.Interface, run string) *Lock {
	t.Helper()
	l := newLock(client, run, LockOptions{Scenario: "storm"})
	if err := l.acquire(t.Context(), "", waitsFor); err != nil {
		t.Fatal(err)
	}
	return l
}

func holderNow(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases(lockNamespace).Get(t.Context(), lockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return heldBy(lease).Run
}

func release(t *testing.T, l *Lock) {
	t.Helper()
	for range 2 {
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestOfRunsStartedAtOnceOneGoesOn(t *testing.T) {
	contest(t, func(t *testing.T, client kubernetes.Interface) {
		locks, errs := make([]*Lock, 5), make([]error, 5)
		var all sync.WaitGroup
		for i := range locks {
			locks[i] = newLock(client, fmt.Sprintf("r%d", i), LockOptions{Scenario: "storm"})
			all.Go(func() { errs[i] = locks[i].acquire(t.Context(), "", waitsFor) })
		}
		all.Wait()
		winner := -1
		for i, err := range errs {
			if err == nil {
				if winner >= 0 {
					t.Errorf("both run %d and run %d hold the lock", winner, i)
				}
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("no run holds the lock: %v", errs)
		}
		for i, err := range errs {
			var held *HeldError
			if i != winner && (!errors.As(err, &held) || held.Run != fmt.Sprintf("r%d", winner) || !strings.Contains(err.Error(), "scenario storm, started by ")) {
				t.Errorf("run %d: error %v, want that run %d holds the lock", i, err, winner)
			}
		}
		release(t, locks[winner])
		if by := holderNow(t, client); by != "" {
			t.Errorf("after the release, %q holds the lock", by)
		}
		release(t, locked(t, client, "next"))
	})
}

// A killed run does not renew its lock, so the next run takes it over. The clock of the killed run does not matter.
func TestLockOfKilledRunExpires(t *testing.T) {
	contest(t, func(t *testing.T, client kubernetes.Interface) {
		first := newLock(client, "killed", LockOptions{})
		first.ahead = 24 * time.Hour
		if err := first.acquire(t.Context(), "", waitsFor); err != nil {
			t.Fatal(err)
		}
		first.renewals.end()
		began := time.Now()
		second := locked(t, client, "next")
		if waited := time.Since(began); waited < lockLife || waited > lockLife+2*lockPoll {
			t.Errorf("the next run took the lock after %s, want %s", waited, lockLife)
		}
		if by := holderNow(t, client); by != "next" {
			t.Errorf("%q holds the lock, want next", by)
		}
		release(t, second)
	})
}

func TestLockDeletedByHandIsMadeAgain(t *testing.T) {
	contest(t, func(t *testing.T, client kubernetes.Interface) {
		l := locked(t, client, "r1")
		for range 3 {
			if err := client.CoordinationV1().Leases(lockNamespace).Delete(t.Context(), lockName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lockRenew + time.Second)
			if by := holderNow(t, client); by != "r1" {
				t.Errorf("after a renewal, %q holds the lock, want r1", by)
			}
		}
		// If another run takes the lock before the first run creates it again, the first run continues and reports the
		// loss of the lock.
		if err := client.CoordinationV1().Leases(lockNamespace).Delete(t.Context(), lockName, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		other := locked(t, client, "r2")
		time.Sleep(2 * lockRenew)
		if !strings.Contains(l.Taken(), "run r2 took over") {
			t.Errorf("Taken() = %q, want that run r2 took over", l.Taken())
		}
		release(t, l)
		if by := holderNow(t, client); by != "r2" {
			t.Errorf("after the first run's release, %q holds the lock, want r2", by)
		}
		release(t, other)
	})
}

func TestLockIsTakenOverByName(t *testing.T) {
	contest(t, func(t *testing.T, client kubernetes.Interface) {
		first := locked(t, client, "r1")
		second := newLock(client, "r2", LockOptions{})
		err := second.acquire(t.Context(), "r9", waitsFor)
		if err == nil || !strings.Contains(err.Error(), "--take-lock names run r9, which does not hold the lock") {
			t.Fatalf("error with --take-lock for a run that does not hold the lock: %v", err)
		}
		if err := second.acquire(t.Context(), "r1", waitsFor); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * lockRenew)
		if by := holderNow(t, client); by != "r2" || first.Taken() == "" || second.Taken() != "" {
			t.Errorf("%q holds the lock, want r2; Taken() of the first run: %q, of the second: %q", by, first.Taken(), second.Taken())
		}
		release(t, first)
		release(t, second)
	})
}

func TestLockWithoutPermissionNamesIt(t *testing.T) {
	c := fake.NewClientset()
	c.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, lockName, errors.New("RBAC says no"))
	})
	err := newLock(c, "r1", LockOptions{}).acquire(t.Context(), "", waitsFor)
	if err == nil || !strings.Contains(err.Error(), "add --no-lock") || !strings.Contains(err.Error(), "leases.coordination.k8s.io in namespace default") {
		t.Errorf("%v", err)
	}
}

func TestNoLockIsReleased(t *testing.T) {
	var l *Lock
	if err := l.Release(t.Context()); err != nil || l.Taken() != "" {
		t.Error(err)
	}
}
