package template

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A template with unbounded loops, values or output fails quickly, with the reason.
func TestTemplatesAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"doubled text":        {`{{$x := "xxxxxxxx"}}{{range until 40}}{{$x = print $x $x}}{{end}}{{len $x}}`, "a function returns a value of more than 16 MiB"},
		"doubled list":        {`{{$l := list 1}}{{range until 34}}{{$l = concat $l $l}}{{end}}{{len $l}}`, "1000000 elements"},
		"nested list":         {`{{$l := list 1}}{{range until 40}}{{$l = list $l $l}}{{end}}{{len $l}}`, "1000000 elements"},
		"loops in loops":      {`{{range until 1000000}}{{range until 1000000}}{{end}}{{end}}`, "more than 1000000 iterations"},
		"loops over numbers":  {`{{range 1000000000}}{{range 1000000000}}{{end}}{{end}}`, "more than 1000000 iterations"},
		"calls itself":        {`{{define "a"}}{{template "a" .}}{{template "a" .}}{{end}}{{template "a" .}}`, "maximum template depth"},
		"calls without a dot": {`{{define "a"}}{{template "b"}}{{template "b"}}{{end}}{{define "b"}}{{template "a"}}{{end}}{{template "a"}}`, "maximum template depth"},
		"calls twice each":    {`{{define "a0"}}{{end}}` + chain(40) + `{{template "a40"}}`, "iterations"},
		"replaced":            {`{{$x := repeat 1000000 "a"}}{{replace "a" $x $x}}`, "the arguments of a function are too large"},
		"repeated argument":   {`{{printf (repeat 100 "%[1]s") (repeat 1000000 "a")}}`, "the arguments of a function are too large"},
		"nested argument":     {`{{printf (repeat 100 "%[1]v") (list (repeat 1000000 "a"))}}`, "the arguments of a function are too large"},
		"wide elements":       {`{{printf "%999d" (until 200000)}}`, "the arguments of a function are too large"},
		"many arguments":      {`{{$x := repeat 4000000 "a"}}{{print` + strings.Repeat(" $x", 20) + `}}`, "the arguments of a function are too large"},
		"many lists":          {`{{$x := until 1000000}}{{print` + strings.Repeat(" $x", 20) + `}}`, "the arguments of a function are too large"},
		"many numbers":        {`{{until 20000 | uniq | len}}`, "uniq does not support more than 10000 elements or 1 MiB"},
		"many regexp matches": {`{{regexMatch (repeat 100 "(a?){99}") (repeat 10000 "b")}}`, "the arguments of a function are too large"},
		"wide":                {`{{printf "%1000000000d" 1}}`, "the width is too large"},
		"wide by an argument": {`{{printf "%*d" 1000000000 1}}`, "the width is too large"},
		"wide precision":      {`{{printf "%.1000000000f" 1.5}}`, "the width is too large"},
		"time of a loop":      {`{{range 3}}{{$.Late.Pass}}{{end}}`, "takes longer than"},
		"time of loops":       {`{{range $x := list 1}}{{with $x}}{{range $i, $y := list 1 2}}{{$.Late.Pass}}{{end}}{{end}}{{end}}`, "takes longer than"},
		"much output":         {`{{$x := repeat 1000000 "a"}}{{range until 1000}}{{$x}}{{end}}`, "the template renders more than 16 MiB"},
	} {
		parsed, err := Parse(c.text)
		if err == nil {
			synctest.Test(t, func(*testing.T) { // so that a busy machine does not exceed the time limit
				_, err = parsed.Documents(map[string]any{"Late": late{parsed.bounds}}, 1, 1)
			})
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	parsed, err := Parse("{{define \"a\"}}n: {{.}}{{end}}kind: {{printf \"%05d\" 7 | quote}}\nyear: {{printf \"web-2024-%d%%8080\" 1}}\n{{range $i, $x := list 1 2}}a{{$i}}: {{$x}}\n{{end}}{{range 2}}b{{.}}: x\n{{end}}{{template \"a\" 3}}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parsed.Documents(nil, 1, 1)
	if err != nil || len(got) != 1 || got[0]["kind"] != "00007" || got[0]["year"] != "web-2024-1%8080" || got[0]["a1"] != 2 || got[0]["b1"] != "x" || got[0]["n"] != 3 {
		t.Errorf("%v, %v", got, err)
	}
}

// late has a method that exceeds the time limit of a template. Calls of a method do not count as steps.
type late struct{ *Bounds }

func (l late) Pass() string {
	l.deadline = time.Time{}
	return ""
}

// chain defines n templates. Each calls the previous one twice.
func chain(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, `{{define "a%d"}}{{template "a%d"}}{{template "a%d"}}{{end}}`, i, i-1, i-1)
	}
	return b.String()
}
