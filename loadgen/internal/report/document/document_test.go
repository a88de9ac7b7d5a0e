package document_test

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"html/template"
	"regexp"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/report/document"
)

func render(t *testing.T, d document.Document) string {
	t.Helper()
	var b strings.Builder
	if err := document.Write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Texts and links of a cluster or a user become neither markup nor scripts, wherever they are on the page.
func TestHostileTexts(t *testing.T) {
	const text, to = `</title></style>"'><script>alert(1)</script>`, "javascript:alert(1)"
	links := []document.Link{{Text: text, To: to}}
	drawing := document.Drawing{Class: text, Width: 1, Height: 1, Label: text, Shapes: []document.Shape{
		{Class: text, Dot: true, Title: text, To: to}, {Class: text, W: 1, Title: text, To: to}, {Class: text, Title: text, To: to},
	}}
	page := render(t, document.Document{
		Title: text, Style: text, Word: text, Heading: text, Line: text, Lead: []string{text}, Links: links, Footer: text,
		Sections: []document.Section{{
			ID: text, Title: text, Text: []string{text}, Links: links, Hint: text,
			Form: &document.Form{To: to, Submit: text, Fields: []document.Field{{Name: text, Label: text, Value: text}, {Name: text, Options: []string{text}}}},
			Table: &document.Table{
				ID: text, Label: text, Class: text, Form: to, Submit: text, Head: []document.Column{{Text: text}},
				Rows: []document.Row{{ID: text, Search: text, Facets: map[string]string{text: text}, Cells: []document.Cell{
					{Check: text, Text: text, To: to, Chip: text, Dim: text, Drawing: &drawing, Small: []string{text}, Links: links},
				}}},
			},
			Figures: []document.Figure{{ID: text, Caption: text, Drawing: drawing, Left: text, Right: text, Notes: []string{text}, Links: links}},
		}, {Table: &document.Table{Empty: text}}},
	})
	for _, refused := range []string{"<script", "javascript:", `"'>`} {
		if strings.Contains(page, refused) {
			t.Errorf("the page contains %q:\n%s", refused, page)
		}
	}
}

// The content security policy of a page allows no more than the page needs.
func TestPolicy(t *testing.T) {
	const script = template.JS("document.title = 'a < b';")
	hash := sha256.Sum256([]byte(script))
	withForm := []document.Section{{Form: &document.Form{To: "runs"}}}
	for name, test := range map[string]struct {
		document document.Document
		want     string
	}{
		"tables":           {document.Document{Sections: []document.Section{{Table: &document.Table{}}}}, "form-action 'none'"},
		"a form":           {document.Document{Sections: withForm}, "form-action 'self'"},
		"a table to check": {document.Document{Sections: []document.Section{{Table: &document.Table{Form: "compare"}}}}, "form-action 'self'"},
		"a script":         {document.Document{Script: script}, "form-action 'none'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"},
		"a live page":      {document.Document{Live: true, Sections: withForm}, "form-action 'self'; connect-src 'self'"},
	} {
		page := render(t, test.document)
		found := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
		if want := "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; " + test.want; found == nil || html.UnescapeString(found[1]) != want {
			t.Errorf("%s: the policy is %q, want %q", name, found, want)
		}
		if strings.Contains(page, "<script>"+string(script)+"</script>") != (test.document.Script != "") {
			t.Errorf("%s: the hash belongs to another script:\n%s", name, page)
		}
	}
}
