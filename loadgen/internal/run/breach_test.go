package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// If the load reaches a limit of the cluster, the run ends early, but its environment has not failed.
func TestLimitsThatLoadReaches(t *testing.T) {
	action := func(err error) error { return exitcode.Environmentf("phase p: phases.p.actions[0]: %w", err) }
	for name, c := range map[string]struct {
		err  error
		want string // how the reason begins; "" means that the environment failed
	}{
		"etcd's quota":          {action(apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded"))), "etcd's database reached its quota"},
		"etcd's quota, bare":    {action(load.Refusal("create", 500, []byte(`{"message":"etcdserver: mvcc: database space exceeded"}`))), "etcd's database reached its quota"},
		"a namespace's quota":   {action(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("exceeded quota: q, requested: pods=1"))), "a ResourceQuota was reached"},
		"priority and fairness": {action(apierrors.NewTooManyRequests("later", 1)), "the API server refuses requests with 429"},
		"descriptors":           {action(errors.New("dial: accept4: too many open files")), "a component ran out of file descriptors"},
		"a manifest":            {action(load.Refusal("create", 422, nil)), ""},
		"no permission":         {action(apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))), ""},
	} {
		r := underwayOf(t, parse(t, "phases: [{name: p, for: 1s}]"), console{Progress: silent{}})
		r.endBy(c.err)
		if c.want == "" {
			if r.info.Failure == "" || r.info.Aborted != "" {
				t.Errorf("%s: Failure %q, Aborted %q; want only Failure", name, r.info.Failure, r.info.Aborted)
			}
			continue
		}
		if !strings.HasPrefix(r.info.Aborted, c.want) || !strings.Contains(r.info.Aborted, "phase p") || r.info.Failure != "" {
			t.Errorf("%s: Aborted %q, Failure %q; want only Aborted", name, r.info.Aborted, r.info.Failure)
		}
	}
}

// If a full database refuses the deletions of a teardown, the run only warns, because the control plane ends with the
// run.
func TestTeardownOfAFullDatabase(t *testing.T) {
	r := underwayOf(t, parse(t, "phases: [{name: p, for: 1s}]"), console{Progress: silent{}})
	r.o.Scenario.Teardown = []scenario.Action{{Kind: "delete"}}
	r.tornDown(fmt.Errorf("teardown[0]: %w", apierrors.NewInternalError(errors.New("etcdserver: mvcc: database space exceeded"))))
	if r.info.Failure != "" || len(r.info.Warnings) != 1 || !strings.Contains(r.info.Warnings[0], "etcd's database reached its quota") {
		t.Errorf("Failure %q, Warnings %q; want one warning about etcd's quota", r.info.Failure, r.info.Warnings)
	}
}

// hinted adds a hint to every message of a library that reaches a user.
func TestErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"credentials":     {exitcode.Environmentf("phase p: %w", apierrors.NewUnauthorized("")), "renew them in your kubeconfig"},
		"a deadline":      {exitcode.Environmentf("not all 3 nodes became Ready: %w", context.DeadlineExceeded), "the API server is overloaded or the machine is busy"},
		"a limiter":       {errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline"), "the API server is overloaded"},
		"nothing listens": {errors.New("dial tcp 127.0.0.1:1: connect: connection refused"), "check that the component is running"},
	} {
		got := hinted(c.err)
		if !strings.Contains(got.Error(), c.want) || !errors.Is(got, c.err) || exitcode.Of(got) != exitcode.Of(c.err) {
			t.Errorf("%s: %v", name, got)
		}
		if again := hinted(got); again.Error() != got.Error() {
			t.Errorf("hinted adds a second hint to %s: %v", name, again)
		}
	}
	for _, err := range []error{nil, errors.New("context deadline exceeded (wait longer)"), errors.New("a disk is full")} {
		if got := hinted(err); got != err {
			t.Errorf("hinted(%v) = %v, want no change", err, got)
		}
	}
}
