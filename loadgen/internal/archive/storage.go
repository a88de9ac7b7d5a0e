package archive

import (
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Storage returns the storage that the archive's queries read, and their engine,
// for those who lay series of their own over it: rules do.
func (a *Archive) Storage() (storage.Queryable, *promql.Engine) { return a.queryable, a.engine }

// Over returns an archive of samples that are still being recorded. It cannot
// evaluate PromQL.
func Over(samples storage.Queryable) *Archive { return &Archive{queryable: samples} }
