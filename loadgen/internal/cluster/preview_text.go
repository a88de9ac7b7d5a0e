package cluster

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// WriteText writes the preview as text for users.
func (p Preview) WriteText(to io.Writer) error {
	var b strings.Builder
	name := p.Scenario
	if p.Variant != "" {
		name += ", variant " + p.Variant
	}
	on := "on a control plane that starts for the run and is removed after it"
	if c := p.Cluster; c != nil {
		on = fmt.Sprintf("on cluster %s (%s), Kubernetes %s, as %s", c.Name, c.Server, c.Version, c.User)
	}
	fmt.Fprintf(&b, "dry run of %s %s; nothing is created\n\n", name, on)
	p.phases(&b)
	p.objects(&b)
	p.requests(&b)
	fmt.Fprintf(&b, "\npeak: %s requests/s from all loads, in phase %s; at most %s open\n", number(p.PeakPerSecond), p.PeakPhase, count(p.Watches, "watch"))
	size := func(n float64) string { return scenario.Bytes(n).Roughly() }
	fmt.Fprintf(&b, "data, roughly: %s/s sent and %s/s received at the peak, %s stored in etcd\n", size(p.Bytes.SentPerSecond), size(p.Bytes.AnsweredPerSecond), size(p.Bytes.Kept))
	list := func(head string, all []string) {
		if len(all) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", head, strings.Join(all, "; "))
		}
	}
	list("faults", p.Faults)
	list("runs on this machine", p.Commands)
	list("profiles", p.Profiles)
	list("ends early when", p.AbortOn)
	for _, n := range p.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	fmt.Fprintln(&b, "left behind: nothing")
	p.permissions(&b)
	_, err := io.WriteString(to, terminal.CleanLines(b.String())) // the cluster may have written the notes
	return err
}

func table(b *strings.Builder, rows func(w io.Writer)) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	rows(w)
	_ = w.Flush() // a Builder accepts all writes
}

func (p Preview) phases(b *strings.Builder) {
	table(b, func(w io.Writer) {
		fmt.Fprintln(w, "PHASE\tAT MOST\tREQUESTS/S\tWATCHES\tUNTIL")
		for _, x := range p.Phases {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", x.Name, scenario.Duration(seconds(x.LongestSeconds)), number(x.PeakPerSecond), x.Watches, x.Until)
		}
		fmt.Fprintf(w, "all\t%s\t%s\t%d\t\n", scenario.Duration(seconds(p.LongestSeconds)), number(p.PeakPerSecond), p.Watches)
	})
}

func (p Preview) objects(b *strings.Builder) {
	fmt.Fprintln(b)
	table(b, func(w io.Writer) {
		fmt.Fprintln(w, "CREATES\tCOUNT\tWHERE\tFOR")
		for _, x := range p.Creates {
			where := x.Where
			switch where {
			case "run":
				where = "namespaces of the run"
			case "cluster":
			default:
				where = "namespace " + where
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Kind, amount(x.Certainty, int64(x.Count)), where, x.For)
		}
	})
}

func (p Preview) requests(b *strings.Builder) {
	fmt.Fprintln(b)
	if len(p.Requests) == 0 {
		fmt.Fprintln(b, "SENDS  the loads send no requests")
		return
	}
	table(b, func(w io.Writer) {
		fmt.Fprintln(w, "SENDS\tPHASE\tVERB\tRESOURCE\tPEAK/S\tIN ALL")
		for _, x := range p.Requests {
			phase, resource, peak := cmp.Or(x.Phase, "all"), x.Resource, ""
			if x.Mapped > 0 {
				resource += " as configmaps"
			}
			if x.PeakPerSecond > 0 {
				peak = number(x.PeakPerSecond)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", x.Load, phase, x.Verb, resource, peak, amount(x.Certainty, x.Total))
		}
	})
}

// amount returns a number with its certainty: "7,245", "about 7,245" or "not known".
func amount(how plan.Certainty, n int64) string {
	if how == plan.Unknown {
		return string(how)
	}
	return strings.TrimSpace(string(how) + " " + number(float64(n)))
}

func (p Preview) permissions(b *strings.Builder) {
	if len(p.Permissions) == 0 {
		return
	}
	missing := p.Missing()
	switch {
	case p.Cluster == nil:
		fmt.Fprintf(b, "\npermissions: none are needed here; %d are needed on your own cluster (--kubeconfig FILE checks them, -o json lists them)\n", len(p.Permissions))
	case len(missing) == 0:
		fmt.Fprintf(b, "\npermissions: all %d are granted (-o json lists them)\n", len(p.Permissions))
	default:
		fmt.Fprintf(b, "\npermissions: %d of %d are missing:\n", len(missing), len(p.Permissions))
		for _, m := range missing {
			fmt.Fprintf(b, "  %s\n", m)
		}
	}
}
