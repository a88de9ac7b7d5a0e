package scenario

import (
	"fmt"
	"slices"
)

// Abort is a condition that ends a run early: load stops at once, and the run has failed.
type Abort struct {
	// Gate: by name: its bound is broken by what was recorded of the phase so far; one of Gate, Alert and Expr
	Gate  string `yaml:"gate,omitempty"`
	Alert string `yaml:"alert,omitempty"` // fires; one of docs/reference/alerts.md
	// Expr: PromQL with one result, as a gate's; $window reaches back to the phase's start
	Expr string `yaml:"expr,omitempty"`
	Max  *Bound `yaml:"max,omitempty"` // of Expr: one of Max and Min
	Min  *Bound `yaml:"min,omitempty"` // of Expr
	// For: how long it must hold without a break, default 0s
	For Duration `yaml:"for,omitempty"`
	// Over: phases in which it is looked at, default all; of a Gate those of the gate
	Over []string `yaml:"over,omitempty" zero:"all phases; leave it out for that"`
}

// String names the condition.
func (a *Abort) String() string {
	switch {
	case a.Gate != "":
		return "gate " + a.Gate
	case a.Alert != "":
		return "alert " + a.Alert
	}
	return "expr " + a.Expr
}

// aborts checks what can be known without the objectives and alerts; package gate checks the rest.
func (v *validator) aborts() {
	for i := range v.s.AbortOn {
		a := &v.s.AbortOn[i]
		path := fmt.Sprintf("abortOn[%d]", i)
		set := slices.DeleteFunc([]string{a.Gate, a.Alert, a.Expr}, func(s string) bool { return s == "" })
		switch bounds := a.Max != nil || a.Min != nil; {
		case len(set) == 0:
			v.fail(path, "name a gate or an alert, or write an expr", "it has no condition")
		case len(set) > 1:
			v.fail(path, "write one for each", "gate, alert and expr exclude each other")
		case a.Expr == "" && bounds:
			v.fail(path, "leave max and min out", "%s has a bound of its own", a)
		case a.Expr != "" && !bounds:
			v.fail(path, "add max: or min:", "the expr has no bound")
		case a.Max != nil && a.Min != nil:
			v.fail(path+".min", "write two", "both max and min")
		}
		if a.Gate != "" {
			v.known(path+".gate", "gate", a.Gate, namesOf(v.s.Gates, func(g Gate) string { return g.Name }))
			if len(a.Over) > 0 {
				v.fail(path+".over", "leave it out", "gate %q has phases of its own", a.Gate)
			}
		}
		if a.For.D() > maxPhase {
			v.fail(path+".for", "at most 24h", "%s is too long", a.For)
		}
		v.over(path+".over", a.Over)
	}
}
