package scenario

import (
	"strings"
	"testing"
)

func TestConditionOfAFlag(t *testing.T) {
	for text, want := range map[string]string{
		"throttled=20%":                      "limit throttled max 20% for 0s over []",
		" throttled = 20% , for = 5s":        "limit throttled max 20% for 5s over []",
		"limit=etcd-size,max=1GiB":           "limit etcd-size max 1GiB for 0s over []",
		"gate=writes,for=30s":                "gate writes for 30s over []",
		"alert=Their Alert,over=a,over=b":    "alert Their Alert for 0s over [a b]",
		"expr=max(up),min=1":                 "expr max(up) min 1 for 0s over []",
		`expr=max(x{a="b",for="c"}),max=1`:   `expr max(x{a="b",for="c"}) max 1 for 0s over []`,
		`expr=clamp(x, 1, 2),max=1/s,for=1m`: "expr clamp(x, 1, 2) max 1/s for 1m0s over []",
	} {
		a, err := ParseAbort(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got strings.Builder
		got.WriteString(a.String())
		if a.Max != nil {
			got.WriteString(" max " + a.Max.String())
		}
		if a.Min != nil {
			got.WriteString(" min " + a.Min.String())
		}
		got.WriteString(" for " + a.For.D().String() + " over [" + strings.Join(a.Over, " ") + "]")
		if got.String() != want {
			t.Errorf("%s is %q, want %q", text, got.String(), want)
		}
	}
}

func TestConditionOfAFlagIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "not a condition (write LIMIT=BOUND",
		"throttled":                  "not a condition",
		"throttled=":                 "not a condition",
		"=5":                         "not a condition",
		"throttled=lots":             `max: "lots" is not a bound`,
		"throttled=20%,for=ever":     `for: "ever" is not a duration`,
		"throttled=20%,max=3":        "limit throttled has two bounds (write throttled=BOUND)",
		"expr=max(up),max=1,max=2":   "max: it appears twice",
		"expr=max(up),for=10x,max=2": `for: "10x" is not a duration`,
	} {
		if a, err := ParseAbort(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", text, a, err, want)
		}
	}
	s, err := Parse("x.yaml", []byte("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: x\nphases: [{name: a, for: 1s}]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"expr=max(up)":           "--abort-on: expr max(up) has no bound (add max: or min:)",
		"gate=x":                 `--abort-on: gate: unknown gate "x" (the scenario defines none)`,
		"throttled=20%,over=b":   `--abort-on: over.0: unknown phase "b" (phases: a)`,
		"alert=X,max=1":          "--abort-on: alert X takes no bound",
		"limit=throttled,min=1%": "--abort-on: min: a limit has only an upper bound (write max:)",
	} {
		a, err := ParseAbort(text)
		if err == nil {
			_, err = s.AbortedBy("--abort-on", a)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if len(s.AbortOn) != 0 {
		t.Error("the scenario itself was changed")
	}
}
