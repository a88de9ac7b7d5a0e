package object

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// removeMany is the action for the verb deletecollection. One request deletes the load's objects in one namespace, or
// those that a selector and a limit select. Before the next request to that namespace, the load recreates the objects.
type removeMany struct {
	call
	set   *Set
	paths []string // paths of the requests, by namespace
	// `whole` holds the namespaces in which all objects exist, `emptied` those whose objects must be recreated.
	whole, emptied chan int
}

func (o *operation) removeMany(x scenario.Operation, s *Set) *removeMany {
	query := ownedQuery(o.load.Name, x.LabelSelector)
	if x.FieldSelector != "" {
		query += "&fieldSelector=" + url.QueryEscape(x.FieldSelector)
	}
	if x.Limit > 0 {
		query += "&limit=" + strconv.Itoa(x.Limit)
	}
	d := &removeMany{
		call: o.call(http.MethodDelete, x, ""), set: s,
		whole: make(chan int, len(s.paths)), emptied: make(chan int, len(s.paths)),
	}
	for i, path := range s.paths {
		d.paths = append(d.paths, path+query)
		d.whole <- i
	}
	return d
}

// ownedQuery returns the URL query that selects those objects of a load that match `selector`. An empty selector
// matches all of them.
func ownedQuery(loadName, selector string) string {
	own := load.LoadLabel + "=" + loadName
	if selector != "" {
		own += "," + selector
	}
	return "?labelSelector=" + url.QueryEscape(own)
}

func (d *removeMany) next(_ int64, r *request.Request, a *Answer) bool {
	d.expect(a)
	select {
	case i := <-d.whole:
		r.Key = int64(i)
		r.Path = append(r.Path, d.paths[i]...)
		return true
	default:
		return false
	}
}

func (d *removeMany) done(r *request.Request, _ *Answer, o load.Outcome) bool {
	i := int(r.Key)
	if o == http.StatusTooManyRequests { // nothing was deleted
		d.whole <- i
	} else {
		d.emptied <- i
	}
	return false
}

func (d *removeMany) background(ctx context.Context) {
	var workers sync.WaitGroup
	for range min(load.AtOnce, len(d.paths)) {
		workers.Go(func() {
			for {
				select {
				case i := <-d.emptied:
					d.set.remakeIn(ctx, i)
					d.whole <- i
				case <-ctx.Done():
					return
				}
			}
		})
	}
	workers.Wait()
}

// remakeIn recreates the missing objects of a namespace. If an object cannot be created, remakeIn tries again after the
// next request to the namespace.
func (s *Set) remakeIn(ctx context.Context, namespace int) {
	there, err := s.numbersIn(ctx, namespace)
	if err != nil {
		return
	}
	var missing []int
	for i, home := range s.home {
		if int(home) == namespace && !there[i] {
			missing = append(missing, i)
		}
	}
	_ = load.Parallel(ctx, len(missing), func(ctx context.Context, i int) error {
		s.remake(ctx, missing[i])
		return nil
	})
}

// numbersIn returns the numbers of those objects of the Set that exist in a namespace.
func (s *Set) numbersIn(ctx context.Context, namespace int) (map[int]bool, error) {
	there := map[int]bool{}
	path := s.paths[namespace] + ownedQuery(s.load.Name, "") + "&limit=" + strconv.Itoa(maxNames)
	for more := ""; ; {
		list, err := readMetadata(ctx, s.asker.once, path+more, s.name)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if number, ours := strings.CutPrefix(list.Items[i].Name, s.stem); ours {
				if n, err := strconv.Atoi(number); err == nil {
					there[n] = true
				}
			}
		}
		if list.Continue == "" {
			return there, nil
		}
		more = "&continue=" + url.QueryEscape(list.Continue)
	}
}
