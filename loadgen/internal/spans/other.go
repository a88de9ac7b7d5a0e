package spans

import (
	"strconv"
	"strings"
)

// These are attributes of the API server's span for a request (OpenTelemetry's semantic conventions for HTTP).
const (
	attributeMethod = "http.request.method"
	attributeStatus = "http.response.status_code"
	attributeAgent  = "user_agent.original"
	attributeTarget = "http.target"
)

// rooted is a request of another client, and the ID of the API server's span for it.
type rooted struct {
	Request
	root ID
}

// reroot makes a span the root of its trace. This is necessary because the API server records the request of a
// privileged client as a child of the span "authentication", which has already ended.
func reroot(all []Span, root ID) {
	for i := range all {
		switch s := &all[i]; {
		case s.ID == root:
			s.Parent = ID{}
		case s.Parent == ID{}:
			s.Parent = root
		}
	}
}

// requestOf returns the request of another client, from the API server's span for it. It returns false for watches, which
// last as long as the client wants, and for other spans.
func requestOf(root *Span) (r rooted, ok bool) {
	method, agent := root.Attribute(attributeMethod), root.Attribute(attributeAgent)
	path, found := strings.CutPrefix(root.Name, method+" /")
	if root.Client || method == "" || !found || strings.Contains(root.Attribute(attributeTarget), "watch=") {
		return r, false
	}
	r.root = root.ID
	r.Request = Request{
		Trace: root.Trace, Client: clientOf(agent), Verb: method, Resource: resourceOf(path),
		Due: root.Start, Sent: root.Start, First: root.End, Last: root.End,
	}
	if method == "GET" && !strings.Contains(path, "{:name}") {
		r.Verb = "LIST"
	}
	r.Status, _ = strconv.Atoi(root.Attribute(attributeStatus))
	return r, true
}

// resourceOf returns the resource and subresource of a route such as apis/apps/v1/namespaces/{:namespace}/deployments. For
// a path that is not a resource, it returns the path.
func resourceOf(path string) string {
	parts := strings.Split(path, "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return path
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[1] == "{:namespace}" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

// clientOf returns the program that a User-Agent header names. If kube-controller-manager sent it, clientOf returns the
// controller.
func clientOf(agent string) string {
	program, rest, _ := strings.Cut(agent, "/")
	if program == "" {
		return "unknown client"
	}
	if i := strings.LastIndex(rest, ":"); strings.Contains(rest, "system:serviceaccount:") {
		return rest[i+1:]
	}
	return program
}
