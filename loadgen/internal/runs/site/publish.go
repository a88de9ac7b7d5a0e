package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/report/document"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Published describes a static site.
type Published struct {
	Dir   string   `json:"dir"`
	Runs  int      `json:"runs"`
	Bytes int64    `json:"bytes"` // total size of all files
	Notes []string `json:"notes,omitempty"`
}

// Publish writes the pages about the runs of an index, and their reports, as files to out, a new or empty directory. The
// pages need no server. If an error occurs, out is not created, or stays empty.
func Publish(ctx context.Context, index *runs.Index, out string) (p Published, err error) {
	exists, err := isEmpty(out)
	if err != nil {
		return p, err
	}
	index.Scan(ctx)
	s := index.Snapshot()
	if len(s.Entries) == 0 {
		return p, exitcode.Usagef("the directories contain no run (name the directory of a run, or a folder that contains runs)")
	}
	parent := filepath.Dir(filepath.Clean(out))
	if exists {
		parent = out // it may be a link, a mount point or the working directory, which cannot be replaced
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return p, exitcode.Usagef("--out %s: %w (name a directory that can be created)", out, userfile.Cause(err))
	}
	work, err := os.MkdirTemp(parent, ".publish-*")
	if err != nil {
		return p, exitcode.Usagef("--out %s: %w (name a directory that can be created)", out, userfile.Cause(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	w := writer{ctx: ctx, dir: filepath.Join(work, "site")}
	if p, err = w.all(s); err != nil {
		return p, exitcode.EnvironmentError(err)
	}
	p.Dir = out
	move := os.Rename
	if exists {
		move = moveContent
	}
	if err := move(w.dir, out); err != nil {
		return p, exitcode.Environmentf("--out %s: %w", out, userfile.Cause(err))
	}
	return p, nil
}

// isEmpty reports whether out is an empty directory. It returns an error if out is anything else that exists.
func isEmpty(out string) (bool, error) {
	list, err := os.ReadDir(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && len(list) == 0:
		return true, nil
	case err == nil:
		err = errors.New("the directory is not empty")
	}
	return false, exitcode.Usagef("--out %s: %w (name a new directory)", out, userfile.Cause(err))
}

func moveContent(from, to string) error {
	list, err := os.ReadDir(from)
	for _, e := range list {
		err = errors.Join(err, os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
	return err
}

// writer writes the files of a site.
type writer struct {
	ctx   context.Context
	dir   string
	bytes int64
	notes []string
}

func (w *writer) all(s runs.Snapshot) (p Published, err error) {
	for i, e := range s.Entries {
		s.Entries[i] = w.readable(e)
	}
	groups := groupsOf(s.Entries, 2)
	l, err := w.comparison(comparable(s.Entries), groups)
	if err != nil {
		return p, err
	}
	for _, e := range s.Entries {
		if err := w.copyRun(e, groups, l); err != nil {
			return p, err
		}
	}
	for _, g := range groups {
		d := trendPage(groups, g, l)
		if err := w.document(trendFile(g.scenario, g.variant), d); err != nil {
			return p, err
		}
	}
	if err := w.write(runs.SiteFile, func(io.Writer) error { return nil }); err != nil {
		return p, err
	}
	if err := w.document("index.html", listPage(s, view{}, latestNews(groups), groups, l)); err != nil {
		return p, err
	}
	return Published{Runs: len(s.Entries), Bytes: w.bytes, Notes: w.notes}, w.ctx.Err()
}

// comparison writes the page that overlays the runs `over`, unless `over` is nil or the runs cannot be read. It returns
// the links for all pages.
func (w *writer) comparison(over []*runs.Entry, groups []group) (links, error) {
	without, with := links{static: true}, links{static: true, compare: "compare.html"}
	if over == nil {
		return without, nil
	}
	var page bytes.Buffer
	if err := comparison(w.ctx, &page, over, groups, with); err != nil {
		w.notes = append(w.notes, with.compare+" was not written: "+err.Error())
		return without, w.ctx.Err()
	}
	return with, w.write(with.compare, func(to io.Writer) error {
		_, err := page.WriteTo(to)
		return err
	})
}

// comparable returns the runs that a static site overlays on one page, the oldest first: all runs, if they are two to
// six runs of one scenario. Otherwise it returns nil.
func comparable(all []*runs.Entry) (over []*runs.Entry) {
	for _, e := range all {
		if e.Judged() {
			over = append([]*runs.Entry{e}, over...)
		}
	}
	if len(over) < 2 || len(over) > maxOver {
		return nil
	}
	for _, e := range over {
		if e.Scenario != over[0].Scenario {
			return nil
		}
	}
	return over
}

func (w *writer) document(name string, d document.Document) error {
	return w.write(name, func(to io.Writer) error { return document.Write(to, d) })
}

// readable returns an entry or, if its page cannot be read, a copy of the entry without the page.
func (w *writer) readable(e *runs.Entry) *runs.Entry {
	if e.Page == "" {
		return e
	}
	page, err := openSmall(e, e.Page)
	if err == nil {
		err = page.Close()
	}
	if err == nil {
		return e
	}
	if !errors.Is(err, fs.ErrNotExist) {
		w.notes = append(w.notes, fmt.Sprintf("%s/%s was not copied: %s", e.Path, e.Page, err))
	}
	without := *e
	without.Page = ""
	return &without
}

// copyRun copies the page of an entry, with links at its top, and its results.
func (w *writer) copyRun(e *runs.Entry, groups []group, l links) error {
	if w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	for _, name := range []string{e.Page, result.ResultFile, result.JUnitFile, result.ScenarioFile, result.ABFile, result.CapacityFile, result.ComparisonFile} {
		if name == "" {
			continue
		}
		from, err := openSmall(e, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			w.notes = append(w.notes, fmt.Sprintf("%s/%s was not copied: %s", e.Path, name, err))
			continue
		}
		err = w.write("run/"+e.Path+"/"+name, func(to io.Writer) error {
			if name != e.Page {
				_, err := io.Copy(to, io.LimitReader(from, maxPage)) // it may grow
				return err
			}
			page, err := l.withLinks(from, e, groups)
			if err == nil {
				_, err = to.Write(page)
			}
			return err
		})
		if err = errors.Join(err, from.Close()); err != nil {
			return err
		}
	}
	return nil
}

// openSmall opens a file of an entry. It returns an error if the file is larger than maxPage.
func openSmall(e *runs.Entry, name string) (*os.File, error) {
	f, err := e.OpenFile(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > maxPage {
		err = fmt.Errorf("it is larger than %d MiB", maxPage>>20)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// write writes a file of the site. name is a path with slashes.
func (w *writer) write(name string, write func(io.Writer) error) (err error) {
	path := filepath.Join(w.dir, filepath.FromSlash(strings.TrimPrefix(name, "/")))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		w.bytes += info.Size()
	}
	return err
}
