package docscheck

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/planetest"
)

const root = "../.."

// TestLinks follows every relative link and anchor.
func TestLinks(t *testing.T) {
	all := pages(t)
	for file, p := range all {
		for _, target := range p.links {
			path, anchor, _ := strings.Cut(target, "#")
			to := file
			if path != "" {
				to = filepath.Join(filepath.Dir(file), filepath.FromSlash(path))
				if _, err := os.Stat(filepath.Join(root, to)); err != nil {
					t.Errorf("%s: link to %s: %v", file, target, err)
					continue
				}
			}
			if other := all[to]; anchor != "" && (other == nil || !slices.Contains(other.anchors, anchor)) {
				t.Errorf("%s: link to %s: %s has no such heading", file, target, to)
			}
		}
	}
}

// TestNames looks for every path, Go file and make target that a code span names.
func TestNames(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	goFiles := map[string]bool{}
	tops := map[string]bool{}
	for _, file := range tracked(t) {
		if filepath.Ext(file) == ".go" {
			goFiles[filepath.Base(file)] = true
		}
		if top, _, ok := strings.Cut(file, "/"); ok {
			tops[top] = true
		}
	}
	for file, p := range pages(t) {
		for _, span := range p.spans {
			for _, m := range regexp.MustCompile(`\bmake ([a-z]+(?:-[a-z]+)*)\b`).FindAllStringSubmatch(span, -1) {
				if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
					t.Errorf("%s: `%s`: the Makefile has no target %s", file, span, m[1])
				}
			}
			for _, word := range strings.Fields(span) {
				path, known := strings.CutPrefix(strings.TrimRight(word, ".,:;"), "./")
				top, _, inside := strings.Cut(path, "/")
				switch {
				case strings.ContainsAny(path, "*{}<>$\\=\"'(") || regexp.MustCompile(`\b[A-Z]{2,}\b`).MatchString(path):
					// a pattern, or a name to fill in
				case inside && (known || tops[top]):
					if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(path, "/...")))); err != nil {
						t.Errorf("%s: `%s`: %v", file, span, err)
					}
				case !inside && strings.HasSuffix(path, ".go") && !goFiles[path]:
					t.Errorf("%s: `%s`: no Go file has this name", file, span)
				}
			}
		}
	}
}

// TestExamples runs the blocks marked "sh test" and validates the scenarios in
// blocks marked "yaml scenario".
func TestExamples(t *testing.T) {
	loadgen, err := planetest.Loadgen(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + filepath.Dir(loadgen) + string(filepath.ListSeparator) + os.Getenv("PATH")
	ran := map[string]int{}
	for file, p := range pages(t) {
		for _, b := range p.blocks {
			var cmd *exec.Cmd
			switch b.mark {
			case "sh test":
				cmd = exec.Command("bash", "-euo", "pipefail", "-c", b.text)
			case "yaml scenario":
				cmd = exec.Command("loadgen", "validate", "-")
				cmd.Path = loadgen
				cmd.Err = nil
				cmd.Stdin = strings.NewReader(b.text)
			default:
				continue
			}
			ran[b.mark]++
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s\n%s", file, b.mark, err, b.text, out)
			}
		}
	}
	if ran["sh test"] == 0 || ran["yaml scenario"] == 0 {
		t.Errorf("ran %v: no page has such a block", ran)
	}
}

// page holds the parts of a Markdown file that the tests read.
type page struct {
	links, anchors, spans []string
	blocks                []block
}

// block is a fenced block: its info string and its lines.
type block struct{ mark, text string }

var (
	fence     = regexp.MustCompile("^ *(```+)(.*)$")
	heading   = regexp.MustCompile(`^#{1,6} +(.*?) *$`)
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	span      = regexp.MustCompile("`([^`\n]+)`")
	linked    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// read splits a page into its parts. Each line of an indented block counts as a code span.
func read(text string) *page {
	p := &page{}
	open := ""
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\n")
		if m := fence.FindStringSubmatch(bare); m != nil && (open == "" || m[1] == open && m[2] == "") {
			if open == "" {
				open = m[1]
				p.blocks = append(p.blocks, block{mark: strings.TrimSpace(m[2])})
			} else {
				open = ""
			}
			continue
		}
		if open != "" {
			p.blocks[len(p.blocks)-1].text += line
			continue
		}
		if strings.HasPrefix(bare, "    ") {
			command, _, _ := strings.Cut(strings.TrimSpace(bare), " # ")
			p.spans = append(p.spans, command)
			continue
		}
		if m := heading.FindStringSubmatch(bare); m != nil {
			p.anchors = append(p.anchors, p.anchor(m[1]))
		}
		for _, m := range span.FindAllStringSubmatch(bare, -1) {
			p.spans = append(p.spans, m[1])
		}
		for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(bare, ""), -1) {
			if !strings.Contains(m[1], "://") && !strings.HasPrefix(m[1], "mailto:") {
				p.links = append(p.links, m[1])
			}
		}
	}
	return p
}

// anchor returns the anchor that a code host generates for a heading: lower case, without punctuation, with dashes for
// spaces. A repeated anchor gets a number.
func (p *page) anchor(text string) string {
	text = linked.ReplaceAllString(text, "$1")
	name := strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
	for n, first := 1, name; slices.Contains(p.anchors, name); n++ {
		name = first + "-" + string(rune('0'+n))
	}
	return name
}

// pages reads all Markdown files of the repository, by path from its root.
func pages(t *testing.T) map[string]*page {
	t.Helper()
	all := map[string]*page{}
	for _, file := range tracked(t) {
		if filepath.Ext(file) != ".md" || strings.Contains(file, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		all[file] = read(string(text))
	}
	return all
}

// tracked returns the paths, relative to the repository's root, of all files except those in directories of builds and
// runs.
func tracked(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "runs", "planes", "proofs"}, rel) {
				return fs.SkipDir
			}
			return nil
		}
		all = append(all, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRead checks that read finds the parts of a page that code hosts render.
func TestRead(t *testing.T) {
	p := read("# A `b` c\n## A b, c\n# A b c\nsee [x](y.md#z), `[no](link)` and <http://a>\n\n    make build # now\n\n```sh test\n# not a heading\ntrue\n```\n")
	if want := []string{"a-b-c", "a-b-c-1", "a-b-c-2"}; !slices.Equal(p.anchors, want) {
		t.Errorf("anchors %q, want %q", p.anchors, want)
	}
	if want := []string{"y.md#z"}; !slices.Equal(p.links, want) {
		t.Errorf("links %q, want %q", p.links, want)
	}
	if want := []string{"b", "[no](link)", "make build"}; !slices.Equal(p.spans, want) {
		t.Errorf("spans %q, want %q", p.spans, want)
	}
	if len(p.blocks) != 1 || p.blocks[0] != (block{"sh test", "# not a heading\ntrue\n"}) {
		t.Errorf("blocks %+v", p.blocks)
	}
}
