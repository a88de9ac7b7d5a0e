package docscheck

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hardToRead lists constructions that are hard to read, with advice for each.
var hardToRead = []struct{ pattern, instead string }{
	{`\b(is|are|was|were) (what|those|that) (of|which|who|has|have|had|are|were|it|they|there|a|an|the)\b`, "name the thing"},
	{`\b(is|are|was|were) none\b`, "say what is missing"},
	{`\b(it|that|this|which) (is|was) no \w+`, "is not a ..., must be ..."},
	{`\b(goes|go|went|gone|going) on\b`, "continues, is still active"},
	{`\banew\b`, "again"},
	{`\bbeside\b`, "next to, compared with, in addition to"},
	{`\bso many(-th)?\b`, "every Nth, N"},
	{`\b(is|are|was|were) (told of|told|asked for|asked of|had|to be had)\b`, "an active verb with its subject"},
	{`\b(whoever|whatever|somebody|nobody|everybody)\b`, "name the actor"},
	{`\b(that|those) of\b`, "repeat the noun"},
	{`\bof (which|whom|whose)\b`, "two sentences"},
	{`\b(in vain|all the same|as it were|for good)\b`, "fails, anyway"},
	{`\bwhat (becomes|became|comes|came|is made|was made|is left|was left) (of|from)?\b`, "name it"},
	{`\bof (its|their|one's) own\b|\bof (yours|ours|theirs|mine)\b`, "own, separate, your"},
	{`\bthe one (that|of|which|who)\b|\bthe others\b`, "name both"},
	{`\bas (it|they) (is|are|was|were)\b`, "unchanged"},
	{`\b(nothing|none|all|no \w+) but\b|\bbut for\b`, "only, except"},
}

// maxHard is the maximum number of such constructions per 10,000 words.
const maxHard = 4

// TestProse keeps comments, messages and pages readable.
func TestProse(t *testing.T) {
	var patterns []*regexp.Regexp
	for _, h := range hardToRead {
		patterns = append(patterns, regexp.MustCompile(`(?i)`+h.pattern))
	}
	word := regexp.MustCompile(`[A-Za-z][A-Za-z'-]+`)
	words := 0
	var found []string
	for _, file := range tracked(t) {
		if strings.Contains(file, "/testdata/") || strings.HasSuffix(file, "prose_test.go") {
			continue
		}
		for _, text := range proseOf(t, file) {
			words += len(word.FindAllString(text, -1))
			for i, p := range patterns {
				for _, hard := range p.FindAllString(text, -1) {
					found = append(found, file+": "+hard+" ("+hardToRead[i].instead+"): "+strings.TrimSpace(text))
				}
			}
		}
	}
	if 10_000*len(found) > maxHard*words {
		t.Errorf("%d hard constructions in %d words, more than %d in 10,000:\n%s", len(found), words, maxHard, strings.Join(found, "\n"))
	}
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`|\\]\\([^)]*\\)|https?://\\S+")
	fences   = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
)

// proseOf returns the comments and messages of a Go file, or the lines of a page without its code.
func proseOf(t *testing.T, file string) (all []string) {
	ext := filepath.Ext(file)
	if ext != ".go" && ext != ".md" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	if ext == ".md" {
		return strings.Split(codeSpan.ReplaceAllString(fences.ReplaceAllString(string(data), ""), " "), "\n")
	}
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile(file, files.Base(), len(data)), data, nil, scanner.ScanComments)
	for {
		switch _, kind, text := s.Scan(); {
		case kind == token.EOF:
			return all
		case kind == token.COMMENT, kind == token.STRING && strings.Count(text, " ") > 1:
			all = append(all, text)
		}
	}
}
