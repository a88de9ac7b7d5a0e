package object

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/client-go/rest"
)

// Client creates single objects. Its requests are not measured, and it retries them. Replays of recordings use it instead
// of a Set, because each of their objects has its own name and resource.
type Client struct{ asker *asker }

// NewClient returns a Client. It sends nothing.
func NewClient(config *rest.Config) (*Client, error) {
	a, err := newAsker(config)
	if err != nil {
		return nil, err
	}
	return &Client{a}, nil
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.asker.close() }

// Resource finds a resource by its name, such as "pods", "deployments.apps" or "deployments/scale.apps", in an
// apiVersion such as "apps/v1" or "v1". An empty apiVersion means the group's preferred version. If the API server does
// not serve the resource, the error is an *UnknownError.
func (c *Client) Resource(ctx context.Context, name, apiVersion string) (*Resource, error) {
	return resolve(ctx, c.asker, name, apiVersion)
}

// Namespaced reports whether the resource is namespaced.
func (r *Resource) Namespaced() bool { return r.namespaced }

// APIVersion returns the group and version in which the resource was found, such as "apps/v1".
func (r *Resource) APIVersion() string { return r.apiVersion }

// AppendCollection appends the path of the resource's objects in a namespace. The namespace "" means all namespaces.
func (r *Resource) AppendCollection(b []byte, namespace string) []byte {
	b = append(b, r.root...)
	if namespace != "" && r.namespaced {
		b = append(append(b, "/namespaces/"...), namespace...)
	}
	return append(append(b, '/'), r.plural...)
}

// List returns the path-escaped names of up to `most` objects in a namespace, and the resourceVersion of the list. The
// namespace "" means all namespaces.
func (r *Resource) List(ctx context.Context, namespace string, most int) (names []string, version uint64, err error) {
	list, err := readMetadata(ctx, r.asker.ask, r.collection(namespace)+"?limit="+strconv.Itoa(most), r.name)
	if err != nil {
		return nil, 0, err
	}
	for _, item := range list.Items {
		names = append(names, url.PathEscape(item.Name))
	}
	return names, parseVersion(list.ResourceVersion), nil
}

// Created is the response to the creation of an object.
type Created struct {
	Status  int
	Version uint64 // the object's version; 0 if unknown
	// Refusal is the reason why the object was not created, in one line. It is nil if the object was created.
	Refusal error
}

// Create tries to create an object in a namespace. It retries while the API server refuses a pod because its
// ServiceAccount does not exist yet. It returns an error only if the API server does not answer.
func (r *Resource) Create(ctx context.Context, namespace string, body []byte, dryRun bool) (Created, error) {
	path := r.collection(namespace)
	if dryRun {
		path += "?dryRun=All"
	}
	reply, err := r.asker.create(ctx, query{method: http.MethodPost, path: path, typ: jsonType, body: body})
	if err != nil {
		return Created{}, err
	}
	made := Created{Status: reply.status, Refusal: failed("create", r.name+" in namespace "+namespace, reply, nil)}
	if made.Refusal == nil {
		made.Version = versionIn(reply.body)
	}
	return made, nil
}

// NamespaceSlot is a placeholder in a manifest. A Template replaces it with the object's namespace.
const NamespaceSlot = string(slotNamespace)

// Payload is random text that makes objects larger. It differs for each turn (the number of an object's update).
type Payload = payload

// NewPayload returns a Payload for Templates whose payloads have up to `largest` letters.
func NewPayload(largest int, seed int64) Payload { return newPayload((largest+3)/4*4, seed) }

// MaxPayload returns the maximum payload, in letters, of an object that a Template renders for the resource. The API
// server refuses larger ones.
func MaxPayload(resource string) int {
	m, _ := builtIn(resource)
	return m.payload.most()
}

// Template renders the objects of a resource.
type Template struct {
	manifest        manifest
	payload         Payload
	made, versioned body
}

// Template returns a template for the resource's objects, with the given labels, the label of the load, and payloads
// from text. It uses the built-in manifest or, if the resource has none, the manifest `rest`, which has no metadata.
func (r *Resource) Template(rest map[string]any, labels map[string]string, loadName string, text Payload) (*Template, error) {
	m, ok := builtIn(r.name)
	if !ok {
		m = manifest{r.apiVersion, r.kind, rest, inAnnotation}
	}
	t := &Template{manifest: m, payload: text}
	var err error
	if t.made, err = m.compile(maps.Clone(labels), loadName, r.namespaced, false); err != nil {
		return nil, err
	}
	t.versioned, err = m.compile(maps.Clone(labels), loadName, r.namespaced, true)
	return t, err
}

// Name identifies an object by its namespace and its name, which is a stem followed by a number.
type Name struct {
	Namespace, Stem string
	Number          int64
}

// Append appends the JSON of an object with a payload of `size` letters, at most MaxPayload. If version is not 0, the
// object has this resourceVersion.
func (t *Template) Append(b []byte, name Name, size int, turn int64, version uint64) []byte {
	from := t.made
	if version > 0 {
		from = t.versioned
	}
	v := values{
		stem: name.Stem, number: name.Number, namespace: name.Namespace,
		payload: t.payload, size: t.letters(size), turn: turn, version: version,
	}
	return from.append(b, &v)
}

// AppendMergePatch appends a JSON merge patch that sets the payload. The patch is also a valid strategic merge patch.
func (t *Template) AppendMergePatch(b []byte, size int, turn int64) []byte {
	return t.manifest.payload.appendPatch(b, t.payload, t.letters(size), turn, "", nil)
}

// AppendJSONPatch appends a JSON patch that sets the payload.
func (t *Template) AppendJSONPatch(b []byte, size int, turn int64) []byte {
	path, key := "/data", "payload"
	switch t.manifest.payload {
	case inAnnotation:
		path, key = "/metadata/annotations", PayloadAnnotation
	case inSpec:
		path = "/spec"
	}
	b = append(b, `[{"op":"add","path":"`+path+`","value":{"`+key+`":"`...)
	return append(t.payload.append(b, t.letters(size), turn), `"}}]`...)
}

// letters returns the number of letters to write for a payload of `size` letters: at most MaxPayload and the Payload's
// largest size, and a multiple of 4 in a Secret.
func (t *Template) letters(size int) int {
	p := t.manifest.payload
	if p == inSecret {
		size = (size + 3) / 4 * 4
	}
	return min(size, p.most(), len(t.payload.text)/2)
}
