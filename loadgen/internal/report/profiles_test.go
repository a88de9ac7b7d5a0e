package report

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

func profiledRun() result.Result {
	r := floodRun()
	r.Run.Profiles = []result.Profile{
		{Phase: "storm", Component: "kube-apiserver-0", Kind: "cpu", Began: at(30), Seconds: 10, File: "profiles/storm-kube-apiserver-0-cpu.pb.gz", Bytes: 20480},
		{Phase: "storm", Component: "etcd-0", Kind: "heap", Began: at(31), Lost: "403 Forbidden: <b>no</b>"},
		{Phase: "storm", Component: "x", Kind: "heap", Began: at(31), File: "../elsewhere/x.pb.gz", Bytes: 1}, // from a forged run.json
	}
	return r
}

func TestProfilesAreLinked(t *testing.T) {
	r := profiledRun()
	var page, text, md strings.Builder
	if err := HTML(t.Context(), &page, r, nil, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := Terminal(&text, r, TerminalOptions{Dir: "d"}); err != nil {
		t.Fatal(err)
	}
	if err := Summary(&md, r); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"the page links":     {page.String(), `<a href="profiles/storm-kube-apiserver-0-cpu.pb.gz">profiles/storm-kube-apiserver-0-cpu.pb.gz</a>`},
		"the page commands":  {page.String(), "go tool pprof -http=: profiles/storm-kube-apiserver-0-cpu.pb.gz"},
		"the page says lost": {page.String(), "lost: 403 Forbidden: &lt;b&gt;no&lt;/b&gt;"},
		"terminal":           {text.String(), "\nprofiles  1 of 3 recorded, in profiles/\n  lost: heap of etcd-0 in phase storm: 403 Forbidden"},
		"Markdown links":     {md.String(), "| cpu | kube-apiserver-0 | storm | [storm-kube-apiserver-0-cpu.pb.gz](profiles/storm-kube-apiserver-0-cpu.pb.gz) |"},
		"Markdown lost":      {md.String(), "| heap | etcd-0 | storm | lost: 403 Forbidden: &lt;b&gt;no&lt;/b&gt; |"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s: %q is missing", name, c.want)
		}
	}
	if strings.Contains(page.String(), `href="../elsewhere`) || strings.Contains(md.String(), "elsewhere") {
		t.Error("the page links a file outside the run")
	}
}

func TestFailedHooksAreShown(t *testing.T) {
	r := floodRun()
	r.Run.Hooks = []result.Hook{
		{Phase: "storm", When: "before", Command: "sh -c 'echo hi'", Required: true, Began: at(30), Seconds: .5, Output: "hooks/storm-before-1.log"},
		{Phase: "storm", When: "after", Command: "./save.sh", Began: at(60), Seconds: 2, Output: "hooks/storm-after-1.log", Failed: "exit code 3: <b>no</b>"},
	}
	r.Run.WithoutHooks = true
	var page, text, md strings.Builder
	if err := HTML(t.Context(), &page, r, nil, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := Terminal(&text, r, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := Summary(&md, r); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"the page links": {page.String(), `<a href="hooks/storm-after-1.log">`},
		"the page":       {page.String(), "failed, but is not required: exit code 3: &lt;b&gt;no&lt;/b&gt;"},
		"to run again":   {page.String(), " --no-hooks"},
		"terminal":       {text.String(), "\nhooks  2 executed, 1 failed, output in hooks/\n  failed: after phase storm: ./save.sh: exit code 3"},
		"Markdown":       {md.String(), "- failed hook: after phase storm: ./save.sh: exit code 3"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s: %q is missing", name, c.want)
		}
	}
}
