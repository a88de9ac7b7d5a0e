package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

const (
	// ruleInterval is of groups that name none.
	ruleInterval = 15 * time.Second
	// ruleSamples bounds one rule: rules are ours, unlike queries.
	ruleSamples = 50_000_000
)

// evaluator evaluates rules over what is recorded, into a store of its own.
type evaluator struct {
	manager *rules.Manager
	samples storage.Queryable // what is recorded, and what the rules make of it
	stop    context.CancelFunc
	running sync.WaitGroup
	db      *tsdb.DB
	dir     string
}

func newEvaluator(c Config, externalURL string) (_ *evaluator, err error) {
	e := &evaluator{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("evaluate rules: %w", err), e.close())
		}
	}()
	if e.dir, err = os.MkdirTemp("", "stormglass-rules-"); err != nil {
		return nil, err
	}
	if e.db, err = archive.OpenStore(e.dir, c.Retention); err != nil {
		return nil, err
	}
	e.samples = both(c.Recorder.Live(), e.db)
	external, err := url.Parse(externalURL)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	engine := newEngine(ruleSamples, nil)
	files := ruleFiles{c.Rules}
	e.manager = rules.NewManager(&rules.ManagerOptions{
		Context: ctx, ExternalURL: external, Logger: slog.New(slog.DiscardHandler), Parser: archive.NewParser(),
		QueryFunc: rules.EngineQueryFunc(engine, e.samples), Queryable: e.samples, Appendable: e.db, GroupLoader: files,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, // alerts are served on request
	})
	e.running.Go(e.manager.Run)
	names, err := files.names()
	if err != nil {
		return nil, err
	}
	// The first update of a manager leaves the alerts to wait until their state
	// from before is restored. There is none: the store is new.
	if err := e.manager.Update(ruleInterval, nil, labels.EmptyLabels(), externalURL, nil); err != nil {
		return nil, err
	}
	for _, name := range names { // for an error that says what is wrong: Update's does not
		if _, errs := files.Load(name, false, model.LegacyValidation); len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
	}
	return e, e.manager.Update(ruleInterval, names, labels.EmptyLabels(), externalURL, nil)
}

// close may be called of a half-made one.
func (e *evaluator) close() error {
	var errs []error
	if e.manager != nil {
		e.stop()
		e.manager.Stop()
		e.running.Wait()
	}
	if e.db != nil {
		errs = append(errs, e.db.Close())
	}
	if e.dir != "" {
		errs = append(errs, os.RemoveAll(e.dir))
	}
	return errors.Join(errs...)
}

// both reads from two storages as if they were one.
func both(a, b storage.Queryable) storage.Queryable {
	return storage.QueryableFunc(func(mint, maxt int64) (storage.Querier, error) {
		one, err := a.Querier(mint, maxt)
		if err != nil {
			return nil, err
		}
		other, err := b.Querier(mint, maxt)
		if err != nil {
			return nil, errors.Join(err, one.Close())
		}
		return storage.NewMergeQuerier([]storage.Querier{one, other}, nil, storage.ChainedSeriesMerge), nil
	})
}

// ruleFiles gives a rules.Manager the files of a file system.
type ruleFiles struct{ fs.FS }

func (f ruleFiles) names() ([]string, error) {
	if f.FS == nil {
		return nil, nil
	}
	return fs.Glob(f.FS, "*.yaml")
}

func (f ruleFiles) Load(name string, ignoreUnknown bool, scheme model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	text, err := fs.ReadFile(f.FS, name)
	if err != nil {
		return nil, []error{err}
	}
	groups, errs := rulefmt.Parse(text, ignoreUnknown, scheme, archive.NewParser(), slog.New(slog.DiscardHandler))
	for i := range errs {
		errs[i] = fmt.Errorf("%s: %w", name, errs[i])
	}
	return groups, errs
}

func (f ruleFiles) Parse(query string) (parser.Expr, error) {
	return archive.NewParser().ParseExpr(query)
}
