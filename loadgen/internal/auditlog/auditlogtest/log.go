// Package auditlogtest writes audit logs of a fictitious cluster. Tests use it.
package auditlogtest

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"
)

// Start returns the time at which all logs begin.
func Start() time.Time { return time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC) }

// Options configure a log. Lines is required.
type Options struct {
	// Lines is the number of lines. Events that end the open watches follow these lines.
	Lines int
	Seed  uint64
	// Rate is the number of requests per second. Zero means 500.
	Rate float64
	// Cluster is the number of the fictitious cluster. All clusters have the same clients, but their service accounts have
	// different UIDs.
	Cluster int
}

// Truth is the expected result of reading a log.
type Truth struct {
	Lines int64
	// System counts the requests of the control plane and nodes, NoResource the requests that are not for a resource, and
	// Clients all other requests by verb.
	System, NoResource int64
	Clients            map[string]int64
}

// client is a program that sends requests. share is its fraction of all requests.
type client struct {
	share           float64
	user, agent     string
	uid             string // UID of the service account
	system, noScope bool
	does            []deed
}

// deed is a kind of request that a client sends. share is its fraction of the client's requests. In the fields, %d is a
// placeholder for a random number. In uri, %s is a placeholder for the namespace, then for the name.
type deed struct {
	share                                                float64
	verb, uri, group, version, resource, subresource, ns string
	named                                                bool
	code                                                 int
}

func clients(cluster int) []client {
	account := func(ns, name string, n int) client {
		return client{user: "system:serviceaccount:" + ns + ":" + name, uid: fmt.Sprintf("%08x-4b1d-4c5e-9d0a-%012x", 0xa0000000+cluster, n)}
	}
	with := func(c client, share float64, agent string, system bool, does ...deed) client {
		c.share, c.agent, c.system, c.does = share, agent, system, does
		return c
	}
	const manager = "kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/f62b0ba/system:serviceaccount:kube-system:"
	return []client{
		with(client{user: "system:node:worker-%03d"}, 0.52, "kubelet/v1.37.1 (linux/amd64) kubernetes/f62b0ba", true,
			deed{0.55, "update", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/%s?timeout=10s", "coordination.k8s.io", "v1", "leases", "", "kube-node-lease", true, 200},
			deed{0.25, "patch", "/api/v1/namespaces/%s/pods/%s/status", "", "v1", "pods", "status", "app-%02d", true, 200},
			deed{0.15, "create", "/api/v1/namespaces/%s/events", "", "v1", "events", "", "app-%02d", true, 201},
			deed{0.05, "watch", "/api/v1/pods?allowWatchBookmarks=true&fieldSelector=spec.nodeName%%3Dworker-001&resourceVersion=%d&timeoutSeconds=437&watch=true", "", "v1", "pods", "", "", false, 200}),
		with(account("kube-system", "deployment-controller", 1), 0.10, manager+"deployment-controller", true,
			deed{1, "update", "/apis/apps/v1/namespaces/%s/deployments/%s/status", "apps", "v1", "deployments", "status", "app-%02d", true, 200}),
		with(account("kube-system", "replicaset-controller", 2), 0.10, manager+"replicaset-controller", true,
			deed{1, "create", "/api/v1/namespaces/%s/pods", "", "v1", "pods", "", "app-%02d", true, 201}),
		with(client{user: "system:kube-scheduler"}, 0.06, "kube-scheduler/v1.37.1 (linux/amd64) kubernetes/f62b0ba/scheduler", true,
			deed{1, "create", "/api/v1/namespaces/%s/pods/%s/binding", "", "v1", "pods", "binding", "app-%02d", true, 201}),
		with(client{user: "system:apiserver"}, 0.02, "kube-apiserver/v1.37.1 (linux/amd64) kubernetes/f62b0ba", true,
			deed{1, "list", "/api/v1/resourcequotas?limit=500", "", "v1", "resourcequotas", "", "", false, 200}),
		{share: 0.03, user: "system:anonymous", agent: "kube-probe/1.37", noScope: true, does: []deed{{1, "get", "/readyz", "", "", "", "", "", false, 200}}},
		with(account("shop", "operator", 3), 0.09, "shop-operator/v0.4.1 (linux/amd64) kubernetes/$Format", false,
			deed{0.35, "update", "/apis/shop.example.com/v1/namespaces/%s/orders/%s/status", "shop.example.com", "v1", "orders", "status", "app-%02d", true, 200},
			deed{0.35, "get", "/api/v1/namespaces/%s/configmaps/%s", "", "v1", "configmaps", "", "app-%02d", true, 200},
			deed{0.15, "list", "/api/v1/namespaces/%s/pods?labelSelector=app%%3Dshop%%2Ctier+in+%%28web%%2Capi%%29&limit=500&resourceVersion=0", "", "v1", "pods", "", "app-%02d", false, 200},
			deed{0.10, "patch", "/api/v1/namespaces/%s/pods/%s?fieldManager=shop-operator&force=true", "", "v1", "pods", "", "app-%02d", true, 200},
			deed{0.05, "watch", "/apis/shop.example.com/v1/orders?allowWatchBookmarks=true&resourceVersion=%d&timeoutSeconds=512&watch=true", "shop.example.com", "v1", "orders", "", "", false, 200}),
		with(client{user: "jane@example.com"}, 0.05, "kubectl/v1.37.1 (linux/amd64) kubernetes/f62b0ba", false,
			deed{0.5, "get", "/apis/apps/v1/namespaces/%s/deployments/%s", "apps", "v1", "deployments", "", "app-%02d", true, 404},
			deed{0.3, "list", "/api/v1/nodes?limit=500", "", "v1", "nodes", "", "", false, 200},
			deed{0.2, "delete", "/api/v1/namespaces/%s/pods/%s", "", "v1", "pods", "", "app-%02d", true, 200}),
		with(account("ci", "deployer", 4), 0.03, "helm/v4.3.1", false,
			deed{1, "create", "/api/v1/namespaces/%s/secrets", "", "v1", "secrets", "", "ci", true, 201}),
	}
}

// Write writes a log and returns the Truth about its contents.
func Write(to io.Writer, o Options) (Truth, error) {
	o.Rate = cmp.Or(o.Rate, 500)
	w := &writer{
		to: bufio.NewWriterSize(to, 1<<16), rand: rand.New(rand.NewPCG(o.Seed, 1)), clients: clients(o.Cluster), truth: Truth{Clients: map[string]int64{}},
	}
	now := Start()
	for w.truth.Lines < int64(o.Lines) {
		now = now.Add(time.Duration(w.rand.ExpFloat64() / o.Rate * float64(time.Second)))
		w.endBefore(now)
		w.request(now)
	}
	w.endBefore(now.Add(24 * time.Hour))
	return w.truth, w.to.Flush()
}

type writer struct {
	to      *bufio.Writer
	rand    *rand.Rand
	clients []client
	open    []event // open watches, ordered by their end
	truth   Truth
}

// request writes a request of a random client. The probability of each client is its share.
func (w *writer) request(at time.Time) {
	at = at.Truncate(time.Microsecond)
	c := pick(w.rand, w.clients, func(c *client) float64 { return c.share })
	d := pick(w.rand, c.does, func(d *deed) float64 { return d.share })
	switch {
	case c.noScope:
		w.truth.NoResource++
	case c.system:
		w.truth.System++
	default:
		w.truth.Clients[d.verb]++
	}
	e := event{c: c, d: d, at: at, id: fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", w.rand.Uint32(), w.rand.Uint32N(1<<16), w.rand.Uint32N(1<<12), w.rand.Uint32N(1<<12), w.rand.Uint64N(1<<48)), number: w.rand.IntN(1 << 20)}
	took := time.Duration(w.rand.ExpFloat64() * 4 * float64(time.Millisecond)).Truncate(time.Microsecond)
	if d.verb == "watch" {
		w.write(e, "ResponseStarted", at.Add(took))
		e.end = at.Add(time.Duration(300+w.rand.IntN(300)) * time.Second)
		i, _ := slices.BinarySearchFunc(w.open, e.end, func(o event, end time.Time) int { return o.end.Compare(end) })
		w.open = slices.Insert(w.open, i, e)
		return
	}
	w.write(e, "ResponseComplete", at.Add(took))
}

// pick returns a random element. The probability of each element is its share.
func pick[T any](random *rand.Rand, all []T, share func(*T) float64) *T {
	x := random.Float64()
	for i := range all {
		if x -= share(&all[i]); x < 0 {
			return &all[i]
		}
	}
	return &all[len(all)-1]
}

// endBefore writes the ends of open watches that end before now.
func (w *writer) endBefore(now time.Time) {
	for len(w.open) > 0 && w.open[0].end.Before(now) {
		w.write(w.open[0], "ResponseComplete", w.open[0].end)
		w.open = w.open[1:]
	}
}

// event is a request of a client. end is the time when a watch ends; it is zero for other requests.
type event struct {
	c       *client
	d       *deed
	id      string
	at, end time.Time
	number  int
}

const form = "2006-01-02T15:04:05.000000Z"

func (w *writer) write(e event, stage string, at time.Time) {
	c, d := e.c, e.d
	user := fill(c.user, e.number%200)
	ns := fill(d.ns, e.number%40)
	name := fmt.Sprintf("%s-%05x", d.resource, e.number%20000)
	fmt.Fprintf(w.to, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":%q,"requestURI":%q,"verb":%q,"user":{"username":%q`,
		e.id, stage, uri(d, ns, name, e.number), d.verb, user)
	if c.uid != "" {
		fmt.Fprintf(w.to, `,"uid":%q`, c.uid)
	}
	fmt.Fprintf(w.to, `,"groups":["system:authenticated"],"extra":{"authentication.kubernetes.io/credential-id":["X509SHA256=9b2f5b4bd7f1b3a7d1c5b0b9f5b1c4c9e0b6a1d2c3f4e5d6c7b8a9f0e1d2c3b4"]}},"sourceIPs":["10.0.%d.%d"],"userAgent":%q`, e.number%8, e.number%250, c.agent)
	if d.resource != "" {
		fmt.Fprintf(w.to, `,"objectRef":{"resource":%q`, d.resource)
		for _, f := range [][2]string{{"namespace", ns}, {"name", name}, {"apiGroup", d.group}, {"apiVersion", d.version}, {"subresource", d.subresource}} {
			if f[1] != "" && (f[0] != "name" || d.named) {
				fmt.Fprintf(w.to, `,%q:%q`, f[0], f[1])
			}
		}
		_ = w.to.WriteByte('}') // Flush returns the error
	}
	fmt.Fprintf(w.to, `,"responseStatus":{"metadata":{},"code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q,"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"x\" of ClusterRole \"y\" to Group \"z\""}}`+"\n",
		d.code, e.at.Format(form), at.Format(form))
	w.truth.Lines++
}

// uri returns the URI of a request with its placeholders filled in.
func uri(d *deed, ns, name string, number int) string {
	switch {
	case d.verb == "watch":
		return fmt.Sprintf(d.uri, number)
	case d.ns == "kube-node-lease":
		return fmt.Sprintf(d.uri, name)
	case d.ns != "" && d.named && d.verb != "create" || d.subresource == "binding":
		return fmt.Sprintf(d.uri, ns, name)
	case d.ns != "":
		return fmt.Sprintf(d.uri, ns)
	}
	return d.uri
}

// fill inserts number into text if text contains a formatting verb.
func fill(text string, number int) string {
	for i := range len(text) {
		if text[i] == '%' {
			return fmt.Sprintf(text, number)
		}
	}
	return text
}
