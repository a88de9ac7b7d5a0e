package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type stages struct {
	*draft
	all []*stage
	// times holds sums of stage delays: "podStart" from the binding of a pod until its containers run, "init runFor"
	// for init containers, and "stopAfter" from the deletion of a pod until it is gone.
	times map[string]span
	lives []*mapping        // podLives of the scenario; each describes the lifecycle of a group of pods
	of    map[string]*stage // the stage of each element of `lives`, by name
	// report is the interval at which nodes report their status. 0 means the default.
	report time.Duration
	ready  *stage // the stage that sets pods to Running
}

// span is a uniformly distributed duration.
type span struct{ from, to time.Duration }

func (s span) plus(o span) span { return span{s.from + o.from, s.to + o.to} }

// orAtOnce returns s or, if s is zero, a span of the shortest duration that scenarios accept.
func (s span) orAtOnce() span {
	if s.to == 0 {
		return span{time.Millisecond, time.Millisecond}
	}
	return s
}

// spread formats the span in the format of distributions in scenarios: its median and 99th percentile.
func (s span) spread() string {
	median := (s.from + s.to) / 2
	p99 := s.from + time.Duration(0.99*float64(s.to-s.from))
	text := scenario.Duration(median).String()
	if p99 > median {
		text += ".." + scenario.Duration(p99).String()
	}
	return text
}

// Kwok imports KWOK Stages from files and directories.
func Kwok(paths []string, o Options) (*Result, error) {
	k := &stages{draft: newDraft(o, strings.Join(paths, ", ")), of: map[string]*stage{}, times: map[string]span{}}
	for _, path := range paths {
		if err := k.read(path); err != nil {
			return nil, err
		}
	}
	if len(k.all) == 0 {
		return nil, fmt.Errorf("%s: the files contain no Stage of kwok.x-k8s.io", strings.Join(paths, ", "))
	}
	k.name = "kwok-stages"
	k.description = "Simulated nodes whose pods follow KWOK's Stages; add load to the phase."
	k.origin = "Stages of KWOK by `loadgen import kwok`."
	k.differences = []string{
		"nodes behave as kubelets do, with their requests, Events and heartbeats; Stages only change their times and outcomes",
		"a delay with a jitter is log-normal, with the median and 99th percentile of KWOK's uniform delay",
	}
	k.nodes = block("count", cmp.Or(o.Nodes, 10))
	for _, s := range k.all {
		k.stage(s)
	}
	if err := errors.Join(k.errs...); err != nil {
		return nil, err
	}
	k.shares()
	start, init, stop := k.times["podStart"], k.times["init runFor"], k.times["stopAfter"]
	if init.to > 0 || stop.to > 0 {
		k.lives = append(k.lives, flow("name", "other-pods")) // the pods that no other entry selects
		for _, l := range k.lives {
			if l.key("init") == nil {
				l.add("init", when(init.to > 0, flow("runFor", init.spread())))
			}
			if l.key("stopAfter") == nil {
				l.add("stopAfter", when(stop.to > 0, stop.spread()))
			}
		}
	}
	k.nodes.add("statusReport", when(k.report > 0, scenario.Duration(k.report).String()), "podStart", when(start.to > 0, start.spread()), "podLives", k.lives)
	p := k.phase("steady")
	p.set("for", "1m")
	if k.top.HeadComment == "" {
		addComment(p.Node, "Add actions, load and faults here.")
	}
	r, err := k.finish()
	if err == nil {
		r.Summary = append(r.Summary, k.table()...)
	}
	return r, err
}

// table returns the rows that compare each Stage with the part of the scenario that contains its delay.
func (k *stages) table() (rows []Row) {
	for _, s := range k.all {
		row := Row{"Stage " + s.name, strings.ToLower(s.kind) + "s", "after " + s.delay.spread(), "none"}
		if phase := lastWord(s.template, "phase:"); phase != "" {
			row.Original = phase + " " + row.Original
		} else if s.deletes {
			row.Original = "gone " + row.Original
		}
		if s.weight > 0 {
			row.Original += fmt.Sprintf(", weight %d", s.weight)
		}
		if s.into != nil {
			row.Scenario = s.into()
		}
		rows = append(rows, row)
	}
	return rows
}

// read reads the Stages in a file or a directory.
func (k *stages) read(path string) error {
	var files []string
	err := filepath.WalkDir(path, func(name string, f fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return userfile.Cause(err)
		case f.IsDir() && name != path && f.Name() == "testdata":
			return filepath.SkipDir
		case !f.IsDir() && (name == path || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))):
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: cannot read it: %w", path, err)
	}
	for _, file := range files {
		data, err := userfile.Read(file, userfile.Text)
		if err != nil {
			return fmt.Errorf("%s: cannot read it: %w", file, err)
		}
		if err := k.readFile(file, data, len(files) > 1); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads the documents of a file, and adds a remark for each one that is not a Stage. others means that the
// import reads more files. A Kustomization then gets no remark.
func (k *stages) readFile(file string, data []byte, others bool) error {
	for doc, err := range documents(file, data, nil) {
		if err != nil {
			return err
		}
		if err := k.begin(file, doc.Content[0]); err != nil {
			return err
		}
		before := len(k.errs)
		f := k.fieldsOf(file, doc.Content[0], "")
		if f.text("kind", "") == "Stage" && strings.HasPrefix(f.text("apiVersion", ""), "kwok.x-k8s.io/") {
			k.all = append(k.all, newStage(f, k.item()))
			continue
		}
		f.leave()
		if kind := f.text("kind", ""); !others || kind != "Kustomization" {
			k.item().remark(nil, f.at("kind"), "%s is not a Stage and is left out", cmp.Or(kind, "a document without kind"))
		}
		k.errs = k.errs[:before] // ignore errors: other documents may have any form
	}
	return nil
}
