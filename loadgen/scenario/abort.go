package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// Abort is a condition that ends a run early.
type Abort struct {
	// Limit: name of a limit (docs/reference/fuse.md), such as throttled; the condition holds while the limit's value
	// is above `max`. Set one of `limit`, `gate`, `alert` and `expr`
	Limit string `yaml:"limit,omitempty"`
	// Gate: name of a gate; the condition holds while the current phase's data break the bound of the gate
	Gate string `yaml:"gate,omitempty"`
	// Alert: name of an alert (docs/reference/alerts.md); the condition holds while the alert fires
	Alert string `yaml:"alert,omitempty"`
	// Expr: PromQL as in a gate; $window is the time since the phase's start
	Expr string   `yaml:"expr,omitempty"`
	Max  *Bound   `yaml:"max,omitempty"` // upper bound of `limit` or `expr`; with `expr`, set one of `max` and `min`
	Min  *Bound   `yaml:"min,omitempty"` // lower bound of `expr`
	For  Duration `yaml:"for,omitempty"` // how long the condition must hold without interruption to end the run
	// Over: phases in which the condition is checked; default: all phases or, with `gate`, the phases of that gate
	Over []string `yaml:"over,omitempty" zero:"all phases; leave it out to use the default"`
}

// String returns the kind and the value of the condition, such as "limit NAME" or "expr PROMQL".
func (a *Abort) String() string {
	switch {
	case a.Limit != "":
		return "limit " + a.Limit
	case a.Gate != "":
		return "gate " + a.Gate
	case a.Alert != "":
		return "alert " + a.Alert
	}
	return "expr " + a.Expr
}

// aborts checks the abort conditions. Package gate checks the rules that need the lists of objectives and alerts.
func (v *validator) aborts() {
	for i := range v.s.AbortOn {
		v.abort(fmt.Sprintf("abortOn[%d]", i), &v.s.AbortOn[i])
	}
}

func (v *validator) abort(path string, a *Abort) {
	set := slices.DeleteFunc([]string{a.Limit, a.Gate, a.Alert, a.Expr}, func(s string) bool { return s == "" })
	bounded := a.Expr != "" || a.Limit != ""
	switch bounds := a.Max != nil || a.Min != nil; {
	case len(set) == 0:
		v.fail(path, "name a limit, a gate or an alert, or write an expr", "this item has no condition")
	case len(set) > 1:
		v.fail(path, "write a separate item for each of them", "limit, gate, alert and expr cannot be used together")
	case !bounded && bounds:
		v.fail(path, "leave out max and min", "%s takes no bound", a)
	case a.Limit != "" && a.Min != nil:
		v.fail(path+".min", "write max:", "a limit has only an upper bound")
	case bounded && !bounds:
		v.fail(path, "add max: or min:", "%s has no bound", a)
	case a.Max != nil && a.Min != nil:
		v.fail(path+".min", "write two items", "max and min cannot be used together")
	}
	if a.Gate != "" {
		v.known(path+".gate", "gate", a.Gate, namesOf(v.s.Gates, func(g Gate) string { return g.Name }))
		if len(a.Over) > 0 {
			v.fail(path+".over", "leave it out", "gate %q itself names the phases that it covers", a.Gate)
		}
	}
	if a.For.D() > maxPhase {
		v.fail(path+".for", "at most 24h", "%s is too long", a.For)
	}
	v.over(path+".over", a.Over)
}

// abortFields lists the fields that may follow the condition in the argument of ParseAbort.
var abortFields = []string{"max", "min", "for", "over"}

// ParseAbort parses the value of a flag: a condition LIMIT=BOUND, gate=NAME, alert=NAME or expr=PROMQL, optionally
// followed by ,max=BOUND ,min=BOUND ,for=DURATION and one ,over=PHASE for each phase. An error is one line with a hint.
func ParseAbort(text string) (a Abort, err error) {
	condition := strings.TrimSpace(text)
	for {
		at := strings.LastIndexByte(condition, ',')
		field, value, _ := strings.Cut(condition[at+1:], "=")
		if field = strings.TrimSpace(field); at < 0 || !slices.Contains(abortFields, field) {
			break
		}
		if err := a.set(field, strings.TrimSpace(value)); err != nil {
			if strings.HasPrefix(condition, "expr=") && strings.ContainsAny(value, `"})]`) {
				break // the comma belongs to the PromQL
			}
			return a, err
		}
		condition = strings.TrimSpace(condition[:at])
	}
	slices.Reverse(a.Over) // the fields were parsed from the end
	name, value, ok := strings.Cut(condition, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case !ok || name == "" || value == "":
		return a, errors.New("not a condition (write LIMIT=BOUND such as throttled=20%, gate=NAME, alert=NAME, or expr=PROMQL,max=BOUND)")
	case name == "limit" || name == "gate" || name == "alert" || name == "expr":
		return a, a.set(name, value)
	case a.Max != nil || a.Min != nil:
		return a, fmt.Errorf("limit %s has two bounds (write %s=BOUND)", name, name)
	}
	a.Limit = name
	return a, a.set("max", value)
}

func (a *Abort) set(field, value string) error {
	var err error
	bound := func(into **Bound) {
		if *into != nil {
			err = errors.New("it appears twice")
			return
		}
		*into = new(Bound)
		err = (*into).UnmarshalText([]byte(value))
	}
	switch field {
	case "limit":
		a.Limit = value
	case "gate":
		a.Gate = value
	case "alert":
		a.Alert = value
	case "expr":
		a.Expr = value
	case "max":
		bound(&a.Max)
	case "min":
		bound(&a.Min)
	case "for":
		err = a.For.UnmarshalText([]byte(value))
	case "over":
		a.Over = append(a.Over, value)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// AbortedBy returns the scenario with `a` as its only abort condition. Errors report `from`, such as the name of a
// flag, as the file name. Package gate checks whether the gate's objective or the alert exists.
func (s *Scenario) AbortedBy(from string, a Abort) (*Scenario, error) {
	c := *s
	c.doc, c.AbortOn = &strictyaml.Document{File: from}, []Abort{a}
	v := &validator{s: &c}
	v.abort("", &c.AbortOn[0])
	return &c, c.doc.Join(v.errs)
}
