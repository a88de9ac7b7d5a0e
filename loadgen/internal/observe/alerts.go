package observe

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
)

type apiGroups struct {
	Groups []apiGroup `json:"groups"`
}

// apiGroup is a group of rules as the API shows it.
type apiGroup struct {
	Name           string    `json:"name"`
	File           string    `json:"file"`
	Rules          []any     `json:"rules"`
	Interval       float64   `json:"interval"`
	Limit          int       `json:"limit"`
	EvaluationTime float64   `json:"evaluationTime"`
	LastEvaluation time.Time `json:"lastEvaluation"`
}

// apiRule holds the fields common to both kinds of rule.
type apiRule struct {
	Type           string           `json:"type"`
	Name           string           `json:"name"`
	Query          string           `json:"query"`
	Labels         model.Metric     `json:"labels"`
	Health         rules.RuleHealth `json:"health"`
	LastError      string           `json:"lastError,omitempty"`
	EvaluationTime float64          `json:"evaluationTime"`
	LastEvaluation time.Time        `json:"lastEvaluation"`
}

type apiAlertingRule struct {
	apiRule
	State         string       `json:"state"`
	Duration      float64      `json:"duration"`
	KeepFiringFor float64      `json:"keepFiringFor"`
	Annotations   model.Metric `json:"annotations"`
	Alerts        []apiAlert   `json:"alerts"`
}

type apiAlert struct {
	Labels          model.Metric `json:"labels"`
	Annotations     model.Metric `json:"annotations"`
	State           string       `json:"state"`
	ActiveAt        time.Time    `json:"activeAt"`
	KeepFiringSince *time.Time   `json:"keepFiringSince,omitempty"`
	Value           string       `json:"value"`
}

// ruleGroups lists the rules with their states.
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
			return answer{}, badParameter("exclude_alerts", errors.New("it is true or false"))
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
			Type: "recording", Name: rule.Name(), Query: rule.Query().String(), Labels: metric(rule.Labels()), Health: rule.Health(),
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
				KeepFiringFor: alerting.KeepFiringFor().Seconds(), Annotations: metric(alerting.Annotations()),
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

// alerts lists those that are pending or fire.
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
			Labels: metric(a.Labels), Annotations: metric(a.Annotations), State: a.State.String(),
			ActiveAt: a.ActiveAt.UTC(), Value: strconv.FormatFloat(a.Value, 'e', -1, 64),
		}
		if !a.KeepFiringSince.IsZero() {
			since := a.KeepFiringSince.UTC()
			shown.KeepFiringSince = &since
		}
		all = append(all, shown)
	}
	return all
}
