package archive

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/storage"
)

// Expressions that need unbounded memory are rejected before their evaluation.
func TestExpressionsAreBounded(t *testing.T) {
	doubled := "up"
	for range 30 {
		doubled = `label_join(` + doubled + `, "a", "", "a", "a")`
	}
	long := strings.Repeat("x", 9000)
	for expr, want := range map[string]string{
		`max_over_time(rate(x[1m])[1h:5s])`:                      "",
		`max_over_time(rate(x[1m])[1h:])`:                        "",
		`max_over_time(max_over_time(x[1h:1m])[1h:1m])`:          "",
		`label_replace(up, "a", "$1-$2", "b", "(.*)/(.*)")`:      "",
		`max_over_time(max_over_time(up[30d:1ms])[30d:1ms])`:     "the subquery [30d:1ms] has 2592000000 steps",
		`sum(max_over_time(up[30d:1s])) > 1`:                     "the subquery [30d:1s] has 2592000 steps",
		`max_over_time(max_over_time(up[20h:1s])[20h:1s])`:       "the subquery [20h:1s] has 144000 steps",
		`max_over_time(up[1y:])`:                                 "the subquery [1y:1m] has 525600 steps",
		strings.Repeat(`max_over_time(up[1d:1s]) + `, 11) + "1":  "",
		strings.Repeat(`max_over_time(up[1d:1s]) + `, 150) + "1": "the subqueries have more than 1000000 steps in total",
		strings.Repeat("up + ", 200) + "1":                       "",
		strings.Repeat("up + ", 200) + "up":                      "the expression has 201 selectors, the limit is 200",
		doubled:                                                  "nested calls of label_join make labels over 1000 times as long",
		"up + " + strings.Repeat("0", maxExpr):                   "the expression has 16389 bytes",
		`label_replace(up, "a", "` + long + `", "", "")`:         "",
		`label_replace(label_replace(up, "a", "` + long + `", "", ""), "b", "` + strings.Repeat("$1", 999) + `", "a", "(.*)")`: "the string arguments of label_replace add over 10000 bytes",
		`label_join(up, "a", ("` + long + `"), "b", "c", "d")`:                                                                 "the string arguments of label_join add over 10000 bytes",
		`label_replace(up, "a", "` + strings.Repeat("$1", 2000) + `", "b", "(.*)")`:                                            "nested calls of label_replace",
	} {
		_, err := NewParser().ParseExpr(expr)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", expr, err, want)
		}
	}
}

// A range query evaluates a subquery over its whole range.
func TestRangeQueriesAreBounded(t *testing.T) {
	end := time.UnixMilli(1_800_000_000_000)
	for _, c := range []struct {
		expr       string
		span, step time.Duration
		want       string
	}{
		{`max_over_time(up[1m:1s])`, time.Hour, time.Second, ""},
		{`max_over_time(up[1s:1ms])`, 24 * time.Hour, time.Minute, "the subquery [1s:1ms] has 86401000 steps"},
		{`up`, 30 * 24 * time.Hour, time.Second, "the query has 2592000 steps"},
	} {
		a := Evaluating(storage.QueryableFunc(func(int64, int64) (storage.Querier, error) { return storage.NoopQuerier(), nil }))
		_, err := a.Range(t.Context(), c.expr, end.Add(-c.span), end, c.step)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s over %s: %v, want %q", c.expr, c.span, err, c.want)
		}
	}
}
