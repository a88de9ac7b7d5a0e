package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
)

// servedWithin is how long a load of a phase waits for the API server to serve its resource. The load tries again every
// servedPoll. For a background load, the limit is the end of the run, because a later phase may define the resource.
const (
	servedWithin = 2 * time.Minute
	servedPoll   = 250 * time.Millisecond
)

// definedLater reports whether err means that a load could not be prepared because the API server does not serve the load's
// resource yet, and a phase of the scenario may define it.
func (ls *loads) definedLater(err error) bool {
	if lacks, ok := errors.AsType[*object.UnknownError](err); ok {
		return ls.definesLater(lacks.Resource)
	}
	if lacks, ok := errors.AsType[*objects.UnknownError](err); ok {
		return ls.definesLater(builtin.ResourceOf(lacks.Object.APIVersion, lacks.Object.Kind))
	}
	return false
}

// awaitReady waits until the load p is prepared, and prepares it if the run could not do so earlier. If p changes the
// objects of a watch load, awaitReady first waits until the watch load is prepared, because the watch load creates the
// objects. awaitReady returns false if p must not run.
func (ls *loads) awaitReady(ctx context.Context, p *placed) bool {
	of := p
	if i := slices.IndexFunc(ls.all, func(o *placed) bool { return o.at.Name == p.at.Watches }); p.at.Watches != "" && i >= 0 {
		of = ls.all[i]
	}
	if of == p && p.late != nil {
		return ls.prepareLate(ctx, p)
	}
	select {
	case <-of.ready:
		return true
	default:
	}
	select {
	case <-of.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

func (ls *loads) prepareLate(ctx context.Context, p *placed) bool {
	within := ctx
	if p.at.Phase != "" {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, servedWithin)
		defer cancel()
	}
	began := time.Now()
	for {
		err := p.load.Prepare(within)
		if err == nil {
			p.late = nil
			close(p.ready)
			return true
		}
		if within.Err() == nil {
			p.late = err // keep the last complete error: the error of a canceled request says less
		}
		if !apiclient.Pause(within, servedPoll) {
			ls.mu.Lock()
			defer ls.mu.Unlock()
			ls.unready = append(ls.unready, fmt.Sprintf("load %s (%s) sent nothing, because the API server did not serve its resource for %s: %v (does an action define the resource before the load ends?)",
				p.at.Name, p.at.Path, time.Since(began).Round(time.Second), p.late))
			return false
		}
	}
}

// unserved returns a message for each load that sent nothing because its resource was never served.
func (ls *loads) unserved() []string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Clone(ls.unready)
}
