package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
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
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
)

const (
	// ruleInterval is the evaluation interval of rule groups that set none.
	ruleInterval = 15 * time.Second
	// ruleSamples is the maximum number of samples that the evaluation of one rule may load. It is higher than the limit
	// for queries, because the rules are trusted: Stormglass provides them.
	ruleSamples = 50_000_000
)

// evaluator evaluates rules on the recorded samples. It writes the results to its own store.
type evaluator struct {
	manager *rules.Manager
	samples storage.Queryable // the recorded samples and the results of the rules
	stop    context.CancelFunc
	running sync.WaitGroup
	db      *tsdb.DB
	dir     *scratch.Dir
}

func newEvaluator(c Config, externalURL string) (_ *evaluator, err error) {
	e := &evaluator{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("evaluate rules: %w", err), e.close())
		}
	}()
	scratch.Sweep() // remove what killed processes have left behind
	if e.dir, err = scratch.New(scratch.Rules); err != nil {
		return nil, err
	}
	if e.db, err = archive.OpenStore(e.dir.Path, c.Retention); err != nil {
		return nil, err
	}
	e.samples = archive.Merge(c.Samples, e.db)
	external, err := url.Parse(externalURL)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	engine := archive.NewEngine(ruleSamples, queryTimeout, nil)
	files := ruleFiles{c.Rules}
	e.manager = rules.NewManager(&rules.ManagerOptions{
		Context: ctx, ExternalURL: external, Logger: slog.New(slog.DiscardHandler), Parser: archive.NewParser(),
		QueryFunc: rules.EngineQueryFunc(engine, e.samples), Queryable: e.samples, Appendable: e.db, GroupLoader: files,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, // clients request the alerts
	})
	e.running.Go(e.manager.Run)
	names, err := files.names()
	if err != nil {
		return nil, err
	}
	// In its first update, a manager restores the earlier state of alerts before it fires any. This new store has no
	// earlier state, so the first update contains no rules.
	if err := e.manager.Update(ruleInterval, nil, labels.EmptyLabels(), externalURL, nil); err != nil {
		return nil, err
	}
	for _, name := range names { // unlike Update, Load returns the reason why a file is invalid
		if _, errs := files.Load(name, false, model.LegacyValidation); len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
	}
	return e, e.manager.Update(ruleInterval, names, labels.EmptyLabels(), externalURL, nil)
}

// close stops the evaluator. newEvaluator also calls close before it returns an error.
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
	if e.dir != nil {
		errs = append(errs, e.dir.Remove())
	}
	return errors.Join(errs...)
}

// ruleFiles loads rule files for a rules.Manager from a file system.
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

type apiGroups struct {
	Groups []apiGroup `json:"groups"`
}

type apiGroup struct {
	Name           string    `json:"name"`
	File           string    `json:"file"`
	Rules          []any     `json:"rules"`
	Interval       float64   `json:"interval"`
	Limit          int       `json:"limit"`
	EvaluationTime float64   `json:"evaluationTime"`
	LastEvaluation time.Time `json:"lastEvaluation"`
}

type apiRule struct {
	Type           string           `json:"type"`
	Name           string           `json:"name"`
	Query          string           `json:"query"`
	Labels         labels.Labels    `json:"labels"`
	Health         rules.RuleHealth `json:"health"`
	LastError      string           `json:"lastError,omitempty"`
	EvaluationTime float64          `json:"evaluationTime"`
	LastEvaluation time.Time        `json:"lastEvaluation"`
}

type apiAlertingRule struct {
	apiRule
	State         string        `json:"state"`
	Duration      float64       `json:"duration"`
	KeepFiringFor float64       `json:"keepFiringFor"`
	Annotations   labels.Labels `json:"annotations"`
	Alerts        []apiAlert    `json:"alerts"`
}

type apiAlert struct {
	Labels          labels.Labels `json:"labels"`
	Annotations     labels.Labels `json:"annotations"`
	State           string        `json:"state"`
	ActiveAt        time.Time     `json:"activeAt"`
	KeepFiringSince *time.Time    `json:"keepFiringSince,omitempty"`
	Value           string        `json:"value"`
}

func (s *Server) ruleGroups(r *http.Request) (answer, error) {
	kind := r.FormValue("type")
	if kind != "" && kind != "alert" && kind != "record" {
		return answer{}, badParameter("type", fmt.Errorf("not supported value %q", kind))
	}
	sets, err := matchersOf(r)
	if err != nil {
		return answer{}, err
	}
	without := false
	if text := r.FormValue("exclude_alerts"); text != "" {
		if without, err = strconv.ParseBool(text); err != nil {
			return answer{}, badParameter("exclude_alerts", errors.New("it must be true or false"))
		}
	}
	out := apiGroups{Groups: []apiGroup{}}
	for _, g := range s.rules.manager.RuleGroups() {
		if !oneOf(r.Form["rule_group[]"], g.Name()) || !oneOf(r.Form["file[]"], g.File()) {
			continue
		}
		if shown := group(g, sets, kind, r.Form["rule_name[]"], without); len(shown.Rules) > 0 {
			out.Groups = append(out.Groups, shown)
		}
	}
	return answer{data: out}, nil
}

func group(g *rules.Group, sets [][]*labels.Matcher, kind string, wanted []string, without bool) apiGroup {
	out := apiGroup{
		Name: g.Name(), File: g.File(), Interval: g.Interval().Seconds(), Limit: g.Limit(),
		EvaluationTime: g.GetEvaluationTime().Seconds(), LastEvaluation: g.GetLastEvaluation().UTC(), Rules: []any{},
	}
	for _, rule := range g.Rules(sets...) {
		if !oneOf(wanted, rule.Name()) {
			continue
		}
		shown := apiRule{
			Type: "recording", Name: rule.Name(), Query: rule.Query().String(), Labels: rule.Labels(), Health: rule.Health(),
			EvaluationTime: rule.GetEvaluationDuration().Seconds(), LastEvaluation: rule.GetEvaluationTimestamp().UTC(),
		}
		if err := rule.LastError(); err != nil {
			shown.LastError = err.Error()
		}
		alerting, alerts := rule.(*rules.AlertingRule)
		switch {
		case alerts && kind != "record":
			shown.Type = "alerting"
			a := apiAlertingRule{
				apiRule: shown, State: alerting.State().String(), Duration: alerting.HoldDuration().Seconds(),
				KeepFiringFor: alerting.KeepFiringFor().Seconds(), Annotations: alerting.Annotations(),
			}
			if !without {
				a.Alerts = active(alerting)
			}
			out.Rules = append(out.Rules, a)
		case !alerts && kind != "alert":
			out.Rules = append(out.Rules, shown)
		}
	}
	return out
}

// alerts returns the alerts that are pending or firing.
func (s *Server) alerts(*http.Request) (answer, error) {
	all := []apiAlert{}
	for _, rule := range s.rules.manager.AlertingRules() {
		all = append(all, active(rule)...)
	}
	return answer{data: map[string][]apiAlert{"alerts": all}}, nil
}

func active(rule *rules.AlertingRule) []apiAlert {
	all := []apiAlert{}
	for _, a := range rule.ActiveAlerts() {
		shown := apiAlert{
			Labels: a.Labels, Annotations: a.Annotations, State: a.State.String(),
			ActiveAt: a.ActiveAt.UTC(), Value: strconv.FormatFloat(a.Value, 'e', -1, 64),
		}
		if !a.KeepFiringSince.IsZero() {
			shown.KeepFiringSince = new(a.KeepFiringSince.UTC())
		}
		all = append(all, shown)
	}
	return all
}
