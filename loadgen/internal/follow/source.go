package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/listwatch"
	"github.com/stormglass/stormglass/loadgen/internal/condition"
)

const (
	// pageSize is the maximum number of objects in one page of a list, as in kubectl and client-go.
	pageSize = "500"
	maxRetry = 5 * time.Second
)

// source is one API path of a set. The objects at this path are listed and then watched.
type source struct {
	set            *set
	path, selector string
	synced         bool            // whether the first list is complete
	listed         map[string]bool // UIDs of the known objects
}

// synced reports whether all objects of the set were listed at least once.
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
		sources = append(sources, &source{set: s, path: path, selector: selector, listed: map[string]bool{}})
	}
	f.change(func() { s.sources = sources })
	all, ctx := errgroup.WithContext(ctx)
	for _, x := range sources {
		all.Go(func() error { return f.followSource(ctx, x) })
	}
	return all.Wait()
}

func (f *Follower) followSource(ctx context.Context, s *source) error {
	m := listwatch.Machine{Backoff: f.backoff(), State: listwatch.FreshList, Next: listwatch.FreshList}
	version := ""
	for first := true; ; {
		var end listwatch.End
		asked := m.Next
		if asked == listwatch.Watch {
			version, end = f.watch(ctx, s, version)
		} else {
			version, end.Err = f.list(ctx, s)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdict, wait := m.Ended(end, 0)
		switch {
		case first && refused(end.Err):
			return fmt.Errorf("list %s: %w", s.set.of.Resource, end.Err)
		case verdict == listwatch.Listed && first:
			first = false
		case verdict == listwatch.Listed:
			f.change(func() {
				for _, p := range s.set.passages {
					p.phase.relists++
				}
			})
		}
		apiclient.Pause(ctx, wait)
	}
}

func (f *Follower) backoff() apiclient.Backoff {
	return apiclient.Backoff{First: f.options.Retry, Most: maxRetry}
}

func refused(err error) bool { return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) }

// list lists and processes all objects of a source. Known objects that are missing in the list count as deleted. It
// returns the resourceVersion of the list.
func (f *Follower) list(ctx context.Context, s *source) (string, error) {
	there := map[string]bool{}
	version, err := f.pages(ctx, s.path, s.selector, func(items []condition.Object, at time.Time) {
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

// pages lists the objects at a path page by page and calls take for each page. It returns the resourceVersion of the
// list.
func (f *Follower) pages(ctx context.Context, path, selector string, take func(items []condition.Object, at time.Time)) (string, error) {
	for continues := ""; ; {
		data, err := body(f.rest.Get().AbsPath(path).
			Param("labelSelector", selector).Param("limit", pageSize).Param("continue", continues).
			SetHeader("Accept", "application/json").Do(ctx))
		if err != nil {
			return "", err
		}
		at := time.Now()
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []condition.Object `json:"items"`
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return "", fmt.Errorf("answer to GET %s: %w", path, err)
		}
		take(page.Items, at)
		if continues = page.Metadata.Continue; continues == "" {
			return page.Metadata.ResourceVersion, nil
		}
	}
}

// body returns the body of a response, or the error in it. Result.Raw would lose the reason of an error status.
func body(r rest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// watch watches a source from a resourceVersion and processes the events until the stream ends. It returns the last
// resourceVersion.
func (f *Follower) watch(ctx context.Context, s *source, version string) (string, listwatch.End) {
	stream, err := f.rest.Get().AbsPath(s.path).
		Param("labelSelector", s.selector).Param("watch", "true").
		Param("allowWatchBookmarks", "true").Param("resourceVersion", version).
		SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return version, listwatch.End{Err: err}
	}
	defer stream.Close()
	end, began := listwatch.End{Up: true}, time.Now()
	frames := listwatch.Frames{Lines: true}
	buf := make([]byte, 64<<10)
	for end.Err == nil {
		n, err := stream.Read(buf)
		at := time.Now()
		end.Err = frames.Feed(buf[:n], func(frame []byte) error {
			reached, err := f.event(s, frame, at)
			if err == nil {
				end.Events++
				version = reached
			}
			return err
		})
		if errors.Is(err, io.EOF) {
			break // the server ends every watch after some time
		}
		end.Err = cmp.Or(end.Err, err)
	}
	end.Lived = time.Since(began)
	return version, end
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

// gone processes the deletion of an object. o is nil if no watch event reported the deletion and the object was only
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
