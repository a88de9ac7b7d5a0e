package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/stormglass/stormglass/internal/jsonscan"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// typedClient returns a client-go clientset without a client-side rate limit.
func typedClient(stub *Child, contentType string) (*kubernetes.Clientset, error) {
	config := stub.Config()
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	return kubernetes.NewForConfig(config)
}

// counted is a side whose watches run in goroutines until their context ends. It counts their events.
type counted struct {
	watch  func(ctx context.Context, n int, event func()) error
	cancel context.CancelFunc
	count  atomic.Int64
}

func newCounted(watch func(ctx context.Context, n int, event func()) error) *counted {
	return &counted{watch: watch, cancel: func() {}}
}

func (c *counted) open(ctx context.Context, n int) error {
	ctx, c.cancel = context.WithCancel(ctx)
	return c.watch(ctx, n, func() { c.count.Add(1) })
}

func (c *counted) events() int64 { return c.count.Load() }
func (c *counted) close()        { c.cancel() }

// typedWatch returns a side with client-go's typed watches. One goroutine reads each watch.
func typedWatch(contentType string) func(*Child) (drainer, error) {
	return func(stub *Child) (drainer, error) {
		c, err := typedClient(stub, contentType)
		return newCounted(func(ctx context.Context, n int, event func()) error {
			maps := c.CoreV1().ConfigMaps(namespace)
			list, err := maps.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for range n {
				w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
				if err != nil {
					return err
				}
				go func() {
					for e := range w.ResultChan() {
						if _, ok := e.Object.(*corev1.ConfigMap); ok {
							event()
						}
					}
				}()
			}
			return nil
		}), err
	}
}

// newInformers returns a side with client-go's informers, one for each watch, whose handlers count events.
func newInformers(stub *Child) (drainer, error) {
	c, err := typedClient(stub, jsonType)
	return newCounted(func(ctx context.Context, n int, event func()) error {
		of := cache.NewListWatchFromClient(c.CoreV1().RESTClient(), "configmaps", namespace, fields.Everything())
		for range n {
			_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
				ListerWatcher: of, ObjectType: &corev1.ConfigMap{},
				Handler: cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { event() }},
			})
			go controller.Run(ctx.Done())
		}
		return nil
	}), err
}

// httpClient is net/http over client-go's transport. It reads responses without decoding them.
type httpClient struct {
	*http.Client
	collection string
}

func newHTTPClient(stub *Child) (*httpClient, error) {
	config := stub.Config()
	c, err := rest.HTTPClientFor(config)
	return &httpClient{c, config.Host + "/api/v1/namespaces/" + namespace + "/configmaps"}, err
}

// send sends a request; the caller closes the response.
func (c *httpClient) send(ctx context.Context, method, path string, body []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.collection+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", jsonType)
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return answer.Body, nil
}

// exchange sends a request and discards the response.
func (c *httpClient) exchange(ctx context.Context, method, path string, body []byte) error {
	answer, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	_, err = io.Copy(io.Discard, answer)
	return err
}

func httpCalls(stub *Child) (calls, error) {
	c, err := newHTTPClient(stub)
	if err != nil {
		return nil, err
	}
	name := func(n int64) string { return fmt.Sprintf("/%s-%d", object, n%listed) }
	return calls{
		"get": func(ctx context.Context, n int64) error { return c.exchange(ctx, http.MethodGet, name(n), nil) },
		"patch": func(ctx context.Context, n int64) error {
			return c.exchange(ctx, http.MethodPatch, name(n), patch(nil, n))
		},
		"list": func(ctx context.Context, _ int64) error { return c.exchange(ctx, http.MethodGet, "", nil) },
	}, nil
}

// future is a resourceVersion later than all versions of the stub, so a watch from it begins without events.
const future = "1000"

// newHTTPWatches returns a side with net/http, in which a goroutine reads each watch with the engine's scanner.
func newHTTPWatches(stub *Child) (drainer, error) {
	c, err := newHTTPClient(stub)
	return newCounted(func(ctx context.Context, n int, event func()) error {
		for range n {
			stream, err := c.send(ctx, http.MethodGet, "?watch=1&allowWatchBookmarks=true&resourceVersion="+future, nil)
			if err != nil {
				return err
			}
			go func() {
				defer stream.Close()
				_ = scan(stream, event) // ends with the watch; lost events fail the benchmark
			}()
		}
		return nil
	}), err
}

// wantedKeys are the keys of a watch event that scan reads, with their depth, and whether their values are objects.
var wantedKeys = map[string]struct {
	depth  int
	object bool
}{"type": {1, false}, "object": {1, true}, "metadata": {2, true}, "resourceVersion": {3, false}}

// scan calls event for each change in a stream. Of each event, it reads the same fields as the engine: type and
// resourceVersion.
func scan(stream io.Reader, event func()) error {
	s := jsonscan.Scanner{Stream: true, LongestKey: 256, LongestValue: 256}
	buffer := make([]byte, 4096)
	depth, change, isType := 0, false, false
	for {
		n, err := stream.Read(buffer)
		for p := buffer[:n]; len(p) > 0; {
			n, token, err := s.Next(p)
			if err != nil {
				return err
			}
			p = p[n:]
			switch token {
			case jsonscan.Key:
				isType = false
				switch key := wantedKeys[string(s.Text())]; {
				case key.depth != depth:
				case key.object:
					s.Enter()
				default:
					s.Keep()
					isType = depth == 1
				}
			case jsonscan.String:
				change = change || isType && string(s.Text()) != "BOOKMARK"
			case jsonscan.Object:
				depth++
			case jsonscan.End:
				if depth--; depth == 0 && change {
					event()
					change = false
				}
			}
		}
		if err != nil {
			return err
		}
	}
}
