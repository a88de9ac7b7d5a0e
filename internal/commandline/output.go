package commandline

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The output formats that every command with a result supports.
const (
	Text = "text"
	JSON = "json"
	YAML = "yaml"
)

// Output is the value of the flag --output: the format in which a command writes its result to standard output.
type Output struct {
	form  string
	forms []string
}

// AddOutput adds the flag --output to a command. `others` are formats in addition to text, JSON and YAML.
func AddOutput(c *cobra.Command, others ...string) *Output {
	o := &Output{form: Text, forms: append([]string{Text, JSON, YAML}, others...)}
	c.Flags().VarP(o, "output", "o", "`format` of the result: "+o.known())
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.forms, cobra.ShellCompDirectiveNoFileComp)) // the flag exists, so this cannot fail
	return o
}

func (o *Output) String() string { return o.form }

// Type returns the type of the flag's value, which pflag shows in the help.
func (o *Output) Type() string { return "form" }

// Set sets the output format by its name. It fails if the command does not support the format.
func (o *Output) Set(form string) error {
	if !slices.Contains(o.forms, form) {
		return fmt.Errorf("is unknown (%s)", o.known())
	}
	o.form = form
	return nil
}

func (o *Output) known() string {
	last := len(o.forms) - 1
	return strings.Join(o.forms[:last], ", ") + " or " + o.forms[last]
}

// Write writes v as JSON or YAML. For any other format, it calls `text`, which writes the result.
func (o *Output) Write(w io.Writer, v any, text func() error) error {
	switch o.form {
	case JSON:
		return encodeJSON(w, v, "  ")
	case YAML:
		return encodeYAML(w, v)
	}
	return text()
}

// WriteEach writes v, one of many results, as one line of JSON or as one YAML document. For any other format, it calls
// `text`, which writes the result.
func (o *Output) WriteEach(w io.Writer, v any, text func() error) error {
	switch o.form {
	case JSON:
		return encodeJSON(w, v, "")
	case YAML:
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
		return encodeYAML(w, v)
	}
	return text()
}

func encodeJSON(w io.Writer, v any, indent string) error {
	e := json.NewEncoder(w)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false) // > in an expression stays readable
	return e.Encode(v)
}

func encodeYAML(w io.Writer, v any) error {
	var doc strings.Builder
	if err := encodeJSON(&doc, v, ""); err != nil {
		return err
	}
	text, err := yaml.JSONToYAML([]byte(doc.String()))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
