package judge

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Rules for which the run is too short are distinguished from rules whose metric is missing. Allowed missing data does
// not change the exit code, and other verdicts are not affected.
func TestLackOfDataIsAllowedByName(t *testing.T) {
	dir := judgedDir(t)
	rules := written(t, "rules.yaml", `
groups:
  - name: mine
    interval: 15s
    rules:
      - {alert: Held, expr: 'process_open_fds{job="etcd"} > 50', for: 1h}
      - {alert: Unseen, expr: 'apiserver_request_total{job="kube-apiserver"} > 50'}
      - {alert: TooMany, expr: 'process_open_fds{job="etcd"} > 50'}
      - {alert: Many, expr: 'process_open_fds{job="etcd"} > 40'}
`)
	quiet := written(t, "quiet.yaml", `
groups:
  - name: mine
    interval: 15s
    rules:
      - {alert: Held, expr: 'process_open_fds{job="etcd"} > 50', for: 1h}
      - {alert: TooMany, expr: 'process_open_fds{job="etcd"} > 50'}
`)
	gates := written(t, "gates.yaml", "gates:\n  - {name: held, alert: Held, fires: false}\n  - {name: open, expr: 'max(process_open_fds)', max: 42}\n")
	none := written(t, "none.yaml", "groups:\n  - {name: g, interval: 15s, rules: [{alert: Held, expr: 'process_open_fds{job=\"etcd\"} > 50', for: 1h}]}\n")
	for name, c := range map[string]struct {
		files, allow []string
		exit         int
		short        string // gates reported as too short
		allowed      string // gates reported as allowed
		reason       string
	}{
		"nothing allowed":             {[]string{quiet}, nil, exitcode.NoData, "Held", "", "Held: no data: Held cannot fire within"},
		"the short run is allowed":    {[]string{quiet}, []string{"Held"}, exitcode.Pass, "Held", "Held", ""},
		"another one lacks its data":  {[]string{rules}, []string{"Held"}, exitcode.Fail, "Held", "Held", "Unseen: no data:"},
		"a missing metric is allowed": {[]string{rules}, []string{"Held", "Unseen"}, exitcode.Fail, "Held", "Held Unseen", "Many: "},
		"a failure is not allowed":    {[]string{rules}, []string{"Held", "Unseen", "Many"}, exitcode.Fail, "Held", "Held Unseen", "Many: "},
		"a gate, by its alert's name": {[]string{gates, quiet}, []string{"Held"}, exitcode.Pass, "held", "held", ""},
		"a gate, by its own name":     {[]string{gates, quiet}, []string{"held"}, exitcode.Pass, "held", "held", ""},
		"nothing is judged":           {[]string{none}, []string{"Held"}, exitcode.NoData, "Held", "Held", "nothing was judged: all 1 gates lack data, and --allow-no-data names all of them"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := By(t.Context(), dir, c.files, c.allow...)
			if err != nil {
				t.Fatal(err)
			}
			var short, allowed []string
			for _, g := range res.Gates {
				if g.TooShort {
					short = append(short, g.Name)
				}
				if g.Allowed {
					allowed = append(allowed, g.Name)
				}
				if (g.TooShort || g.Allowed) && g.Verdict != result.NoData {
					t.Errorf("%s: %+v", g.Name, g)
				}
			}
			reasons := strings.Join(res.Reasons, "\n")
			if res.ExitCode != c.exit || strings.Join(short, " ") != c.short || strings.Join(allowed, " ") != c.allowed || !strings.Contains(reasons, c.reason) {
				t.Errorf("exit code %d, too short %v, allowed %v, because of\n%s", res.ExitCode, short, allowed, reasons)
			}
			for _, name := range allowed {
				if strings.Contains(reasons, name+":") {
					t.Errorf("%s is a reason: %s", name, reasons)
				}
			}
		})
	}
	for name, want := range map[string]string{
		"TooManny": `--allow-no-data "TooManny": no rule or gate of that name is judged (did you mean "TooMany"`,
		"xyz":      `--allow-no-data "xyz": no rule or gate of that name is judged (it takes`,
	} {
		if _, err := By(t.Context(), dir, []string{quiet}, name); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
