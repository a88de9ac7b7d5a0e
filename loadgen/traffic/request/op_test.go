package request

import (
	"context"
	"time"

	"github.com/stormglass/stormglass/loadgen/traffic"
)

// gets is an operation: GET of one object. Its hooks may be nil.
type gets struct {
	template *Template
	err      error // of making the template; Prepare's
	data     func(status int, p []byte) error
	done     func(r *Request, o traffic.Outcome) bool
	next     func(n int64, r *Request) bool
}

func newGets(t traffic.Target) *gets {
	templates, err := NewTemplates(t)
	if err != nil {
		return &gets{err: err}
	}
	return &gets{template: templates.New("GET", "application/json", "", nil)}
}

func (o *gets) Kinds() []Kind                 { return []Kind{{Verb: "get", Resource: "configmaps"}} }
func (o *gets) Prepare(context.Context) error { return o.err }
func (o *gets) Background(context.Context)    {}
func (o *gets) KindOf(int64) int              { return 0 }

func (o *gets) Next(n int64, r *Request) bool {
	r.Template = o.template.Load()
	r.Path = append(r.Path, "/api/v1/namespaces/storm/configmaps/one"...)
	return o.next == nil || o.next(n, r)
}

func (o *gets) Data(_ *Request, status int, p []byte) error {
	if o.data == nil {
		return nil
	}
	return o.data(status, p)
}

func (o *gets) Done(r *Request, outcome traffic.Outcome, _ time.Time) bool {
	return o.done != nil && o.done(r, outcome)
}
