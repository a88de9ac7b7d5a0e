package object

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// accountsWithin is how long a load waits for the ServiceAccount of a new namespace, and accountsPoll is the interval
// of its attempts. The API server refuses a pod until the pod's ServiceAccount exists.
const (
	accountsWithin = 30 * time.Second
	accountsPoll   = 100 * time.Millisecond
)

func (s *Set) makeAll(ctx context.Context) error {
	if s.count == 0 {
		return nil
	}
	if err := s.makeNamespaces(ctx); err != nil {
		return err
	}
	if s.updates {
		s.versions = make([]version, s.count)
	}
	makeOwn := func(ctx context.Context, i int) error { return s.make(ctx, s.share.Number(i)) }
	if err := load.Parallel(ctx, s.share.Part(s.count), makeOwn); err != nil {
		return err
	}
	if s.updates && s.share.Part(s.count) > 0 {
		return s.learnUpdates(ctx)
	}
	return nil
}

// makeNamespaces creates the namespaces of the load, except the run's namespace. If RBAC does not allow the client to
// create namespaces, they must exist already.
func (s *Set) makeNamespaces(ctx context.Context) error {
	if !s.resource.namespaced {
		return nil
	}
	return load.Parallel(ctx, len(s.namespaces)-1, func(ctx context.Context, i int) error {
		name := s.namespaces[i+1]
		body, err := json.Marshal(object{
			"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "labels": s.labels},
		})
		if err != nil {
			return err
		}
		r, err := s.asker.ask(ctx, query{method: http.MethodPost, path: "/api/v1/namespaces", typ: jsonType, body: body})
		return failed("create", fmt.Sprintf("namespace %q", name), r, err, http.StatusConflict, http.StatusForbidden)
	})
}

// what returns the resource and name of object i for error messages, such as configmaps "load-0".
func (s *Set) what(i int) string { return fmt.Sprintf("%s %q", s.name, fmt.Sprint(s.stem, i)) }

func (s *Set) make(ctx context.Context, i int) error {
	body := s.appendObject(nil, s.made, i, 0, 0)
	r, err := s.create(ctx, s.home[i], "", body)
	verb := "create"
	if err == nil && r.status == http.StatusConflict {
		// An earlier run, or a request whose response was lost, has created the object. Apply it: an apply needs no
		// resourceVersion.
		verb = "apply"
		r, err = s.asker.ask(ctx, query{
			method: http.MethodPatch, path: string(s.AppendPath(nil, i)) + applyQuery, typ: applyPatchType, body: body,
		})
	}
	if err := failed(verb, s.what(i), r, err); err != nil {
		return err
	}
	s.learnFrom(i, r)
	return nil
}

// create creates an object in a namespace of the Set, with the retries of asker.create.
func (s *Set) create(ctx context.Context, namespace uint16, options string, body []byte) (reply, error) {
	return s.asker.create(ctx, query{method: http.MethodPost, path: s.paths[namespace] + options, typ: jsonType, body: body})
}

// create sends a request that creates an object. It retries while the API server refuses a pod because the
// ServiceAccount does not exist.
func (a *asker) create(ctx context.Context, q query) (reply, error) {
	for until := time.Now().Add(accountsWithin); ; {
		r, err := a.ask(ctx, q)
		early := err == nil && r.status == http.StatusForbidden && strings.Contains(load.Message(r.status, r.body), "looking up service account")
		if !early || time.Now().After(until) || !apiclient.Pause(ctx, accountsPoll) {
			return r, err
		}
	}
}

// awaitCreate creates the namespaces. If the objects are pods, it waits until a dry run can create a pod in each
// namespace.
func (s *Set) awaitCreate(ctx context.Context) error {
	if err := s.makeNamespaces(ctx); err != nil {
		return err
	}
	if s.name != "pods" {
		return nil
	}
	return load.Parallel(ctx, len(s.namespaces), func(ctx context.Context, i int) error {
		r, err := s.create(ctx, uint16(i), "?dryRun=All", s.appendNew(nil, -1, i))
		if err != nil {
			return fmt.Errorf("create %s: %w", s.name, err)
		}
		return failed("create", s.name+" in namespace "+s.namespaces[i], r, nil)
	})
}

// learnUpdates finds out, with a dry run, whether an update must contain the object's resourceVersion. Leases and
// custom resources require it, for example. If so, the Set keeps the versions of its objects.
func (s *Set) learnUpdates(ctx context.Context) error {
	own := s.share.Index
	dryRun := query{method: http.MethodPut, path: string(s.AppendPath(nil, own)) + "?dryRun=All", typ: jsonType}
	dryRun.body = s.appendObject(nil, s.made, own, 1, 0)
	r, err := s.asker.ask(ctx, dryRun)
	if err != nil {
		return fmt.Errorf("update %s: %w", s.what(own), err)
	}
	if r.success() {
		s.versions = nil
		return nil
	}
	if s.updated, err = s.manifest.compile(s.labels, s.load.Name, s.resource.namespaced, true); err != nil {
		return err
	}
	s.stale = make(chan int, s.count)
	dryRun.body = s.appendObject(nil, s.updated, own, 1, s.versions[own].number.Load())
	r, err = s.asker.ask(ctx, dryRun)
	return failed("update", s.what(own), r, err, http.StatusConflict) // a conflict also shows that updates are allowed
}
