package alertproof

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

func number(v float64) *float64 { return &v }

// sample returns a report with two proofs. In the first one, a rule fires in time and another rule follows from it. In
// the second one, one rule is late, one fires although it must be silent, and one cannot be judged.
func sample() Report {
	return NewReport([]Judged{
		{Proof: "slow-path", Dir: "runs/a", Seconds: 465, Verdict: result.Pass, Reasons: []string{}, Outcomes: []Outcome{
			{Rule: "Disk", Part: MustFire, Verdict: result.Pass, Fired: true, CauseAt: number(46), FiredAt: number(119), ResolvedAt: number(300), Latency: number(73), Floor: number(92)},
			{Rule: "Follows", Part: MayFire, Verdict: result.Pass, Fired: true, Why: "it waits"},
			{Rule: "Late", Part: Silent, Verdict: result.Pass},
			{Rule: "Blind", Part: Silent, Verdict: result.NoData, Why: "metric_x was not recorded"},
		}},
		{Proof: "quorum", Dir: "runs/b", Seconds: 315, Verdict: result.Fail, Reasons: []string{"Late: fired after 3m20s", "Disk: fired 12s after the first scrape"}, Outcomes: []Outcome{
			{Rule: "Disk", Part: Silent, Verdict: result.Fail, Fired: true},
			{Rule: "Follows", Part: Silent, Verdict: result.Pass},
			{Rule: "Late", Part: MustFire, Verdict: result.Fail, Fired: true, FiredAt: number(246), ResolvedAt: number(4000), InCalm: true, Latency: number(200), Floor: number(92)},
			{Rule: "Blind", Part: MayFire, Verdict: result.Pass},
		}},
	}, []string{"Disk", "Late", "Follows"})
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := Text(&b, sample()); err != nil {
		t.Fatal(err)
	}
	want := `FAIL  0 of 3 rules fired when required and resolved; unrelated alerts: 1

   PROOF      VERDICT  RAN    RUN
a  slow-path  pass     7m45s  runs/a
b  quorum     fail     5m15s  runs/b

RULE     a b   LATENCY    FLOOR  TIMES  FIRED FOR
Disk     F !     1m13s    1m32s   0.79       3m1s
Follows  c .
Late     . x     3m20s    1m32s   2.17   1h2m34s*
Blind    ? .

` + legend + `
latency: time from the fault to the alert; *: resolves only after the run, provided that the last scraped values do not change

quorum: Late: fired after 3m20s
quorum: Disk: fired 12s after the first scrape
not proven here: Follows
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	report := sample()
	report.Proofs[0].Reasons = []string{`up{job="etcd"} < 1 & a|b, *not* <img src=x>`}
	if err := Markdown(&b, report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### FAIL: proof of the alerts", "| quorum | fail | 5m15s | Late: fired after 3m20s; Disk: fired 12s after the first scrape |", "\nDisk     F !     1m13s",
		`up{job="etcd"} &lt; 1 &amp; a\|b, \*not\* &lt;img src=x&gt;`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
