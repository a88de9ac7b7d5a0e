package markdown

import "testing"

func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"a|b\nc":        `a\|b c`,
		`a\|b`:          `a\\\|b`,
		"<b>&":          "&lt;b&gt;&amp;",
		"`*x*_y_[z](u)": "\\`\\*x\\*\\_y\\_\\[z\\](u)",
		"98%, p99 5 ms": "98%, p99 5 ms",
	} {
		if got := Cell(text); got != want {
			t.Errorf("Cell(%q) is %q, want %q", text, got, want)
		}
	}
}
