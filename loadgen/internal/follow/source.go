package follow

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

const maxRetry = 5 * time.Second

// source is one API path of a set of objects. The Follower lists the objects at this path and then watches them.
type source struct {
	listwatch.Reflector
	set    *set
	synced bool            // whether the first list is complete
	listed map[string]bool // UIDs of the known objects
}

func (f *Follower) newSource(s *set, path, selector string) *source {
	x := &source{set: s, listed: map[string]bool{}}
	x.Reflector = listwatch.Reflector{
		Client: f.rest, Path: path, Selector: selector, ListType: "application/json", WatchType: "application/json",
		Backoff: f.backoff(), Refused: refused,
		List:        func(ctx context.Context) (string, error) { return f.list(ctx, x) },
		Event:       func(event []byte, at time.Time) (string, error) { return f.event(x, event, at) },
		Relisted:    func() { f.relisted(s) },
		Reconnected: func() {},
	}
	return x
}

// synced reports whether all objects of the set have been listed at least once.
func (s *set) synced() bool {
	return len(s.sources) > 0 && !slices.ContainsFunc(s.sources, func(x *source) bool { return !x.synced })
}

// follow resolves a set to API paths, and lists and watches its objects until ctx ends.
func (f *Follower) follow(ctx context.Context, s *set) error {
	paths, selector, err := f.resolve(ctx, s.of)
	if err != nil {
		return err
	}
	var sources []*source
	for _, path := range paths {
		sources = append(sources, f.newSource(s, path, selector))
	}
	f.change(func() { s.sources = sources })
	all, ctx := errgroup.WithContext(ctx)
	for _, x := range sources {
		all.Go(func() error {
			if err := x.Run(ctx); err != nil {
				return fmt.Errorf("list %s: %w", s.of.Resource, err)
			}
			return nil
		})
	}
	return all.Wait()
}

// relisted counts a repeated list of a set's objects.
func (f *Follower) relisted(s *set) {
	f.change(func() {
		for _, p := range s.passages {
			p.phase.relists++
		}
	})
}

func (f *Follower) backoff() apiclient.Backoff {
	return apiclient.Backoff{First: f.options.Retry, Most: maxRetry}
}

func refused(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// list lists and processes all objects of a source. Known objects that are missing in the list count as deleted. It
// returns the resourceVersion of the list.
func (f *Follower) list(ctx context.Context, s *source) (string, error) {
	there := map[string]bool{}
	version, err := s.pages(ctx, func(items []condition.Object, at time.Time) {
		f.change(func() {
			for _, o := range items {
				there[uidOf(o)] = true
				s.saw(o, at, true)
			}
		})
	})
	if err != nil {
		return "", err
	}
	f.change(func() {
		for uid := range s.listed {
			if !there[uid] {
				s.gone(uid, nil, time.Now())
			}
		}
		s.synced = true
	})
	return version, nil
}

// pages lists the objects of a source page by page and calls take with the objects of each page. It returns the
// resourceVersion of the list.
func (s *source) pages(ctx context.Context, take func(items []condition.Object, at time.Time)) (string, error) {
	return s.Pages(ctx, func(data []byte) (version, token string, err error) {
		at := time.Now()
		var page struct {
			Metadata metav1.ListMeta    `json:"metadata"`
			Items    []condition.Object `json:"items"`
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return "", "", fmt.Errorf("response to GET %s: %w", s.Path, err)
		}
		take(page.Items, at)
		return page.Metadata.ResourceVersion, page.Metadata.Continue, nil
	})
}

// event processes one watch event and returns its resourceVersion.
func (f *Follower) event(s *source, frame []byte, at time.Time) (version string, err error) {
	var e struct {
		Type   string           `json:"type"`
		Object condition.Object `json:"object"`
	}
	if err := json.Unmarshal(frame, &e); err != nil {
		return "", fmt.Errorf("%w: %w", listwatch.ErrMalformed, err)
	}
	meta, _ := e.Object["metadata"].(map[string]any)
	version, _ = meta["resourceVersion"].(string)
	switch e.Type {
	case "ERROR":
		code, _ := e.Object["code"].(int64)
		return "", &listwatch.Refusal{Status: cmp.Or(int(code), http.StatusInternalServerError)}
	case "DELETED":
		f.change(func() { s.gone(uidOf(e.Object), e.Object, at) })
	case "ADDED", "MODIFIED":
		f.change(func() { s.saw(e.Object, at, false) })
	case "BOOKMARK":
	default:
		return "", fmt.Errorf("%w: an event has the unknown type %q", listwatch.ErrMalformed, e.Type)
	}
	return version, nil
}

func uidOf(o condition.Object) string {
	meta, _ := o["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return uid
}

func (s *source) saw(o condition.Object, at time.Time, listed bool) {
	uid := uidOf(o)
	s.listed[uid] = true
	s.set.counter.Put(uid, o)
	for _, p := range s.set.passages {
		p.saw(uid, o, at, listed)
	}
	for _, p := range s.set.endpoints {
		p.sawSlice(o, at)
	}
}

// gone processes the deletion of an object. o is nil if no watch event reported the deletion, and the object was only
// missing in a list.
func (s *source) gone(uid string, o condition.Object, at time.Time) {
	delete(s.listed, uid)
	s.set.counter.Delete(uid)
	for _, p := range s.set.passages {
		p.gone(uid, at)
	}
	for _, p := range s.set.endpoints {
		if o != nil {
			p.sliceGone(o)
		}
	}
}
