package listwatch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// pageSize is the maximum number of objects in one page of a list, as in kubectl and client-go. It limits memory use.
const pageSize = "500"

// Reflector lists the objects at a path and then watches them, with a client of client-go. All fields are required.
type Reflector struct {
	Client rest.Interface
	// Path is the path of the collection. Selector is a label selector; empty selects all objects.
	Path, Selector string
	// ListType and WatchType are the media types of lists and watches: either both for JSON or both for protobuf.
	ListType, WatchType string
	// Backoff computes the waits after consecutive failures.
	Backoff apiclient.Backoff
	// List lists all objects, for example with Pages, and returns the resourceVersion of the list.
	List func(ctx context.Context) (version string, err error)
	// Event processes an event that arrived at the given time. It returns the resourceVersion of the event's object.
	Event func(event []byte, at time.Time) (version string, err error)
	// Refused reports whether the error of a list is permanent. Such an error of the first list ends Run.
	Refused func(err error) bool
	// Relisted is called by Run after each list except the first.
	Relisted func()
	// Reconnected is called by Run after each watch that ended without a 410.
	Reconnected func()
}

// Run lists and watches the objects until ctx ends. It continues after lost connections and expired resourceVersions.
// It fails if the error of the first list is permanent (see Refused).
func (r *Reflector) Run(ctx context.Context) error {
	m := Machine{Backoff: r.Backoff, State: FreshList, Next: FreshList}
	version := ""
	for first := true; ; {
		var end End
		asked := m.Next
		if asked == Watch {
			version, end = r.watch(ctx, version)
		} else {
			version, end.Err = r.List(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdict, wait := m.Ended(end, 0)
		switch {
		case first && r.Refused(end.Err):
			return end.Err
		case verdict == Listed && first:
			first = false
		case verdict == Listed:
			r.Relisted()
		case asked == Watch && verdict != Expired:
			r.Reconnected()
		}
		apiclient.Pause(ctx, wait)
	}
}

// Pages lists the objects page by page and returns the resourceVersion of the list. It calls `read` with the body of
// each page. `read` returns the resourceVersion and the continue token in the page.
func (r *Reflector) Pages(ctx context.Context, read func(page []byte) (version, token string, err error)) (version string, err error) {
	for token := ""; ; {
		data, err := apiclient.Body(r.Client.Get().AbsPath(r.Path).
			Param("labelSelector", r.Selector).Param("limit", pageSize).Param("continue", token).
			SetHeader("Accept", r.ListType).Do(ctx))
		if err != nil {
			return "", err
		}
		if version, token, err = read(data); err != nil {
			return "", err
		}
		if token == "" {
			return version, nil
		}
	}
}

// watch processes the events after a resourceVersion until the stream ends. It returns the last resourceVersion.
func (r *Reflector) watch(ctx context.Context, version string) (string, End) {
	stream, err := r.Client.Get().AbsPath(r.Path).
		Param("labelSelector", r.Selector).Param("watch", "true").
		Param("allowWatchBookmarks", "true").Param("resourceVersion", version).
		SetHeader("Accept", r.WatchType).Stream(ctx)
	if err != nil {
		return version, End{Err: err}
	}
	defer stream.Close()
	end, began := End{Up: true}, time.Now()
	frames := Frames{Lines: r.WatchType != protobuf.WatchType}
	buf := make([]byte, 64<<10)
	for end.Err == nil {
		n, err := stream.Read(buf)
		at := time.Now()
		end.Err = frames.Feed(buf[:n], func(event []byte) error {
			reached, err := r.Event(event, at)
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
