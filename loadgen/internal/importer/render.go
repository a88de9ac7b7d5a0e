package importer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	bounds "github.com/stormglass/stormglass/loadgen/internal/template"
)

// configFunctions returns the template functions for kube-burner's configuration files. Random functions return the
// same values in each import. env reads from values instead of from the environment.
func configFunctions(values map[string]any) template.FuncMap {
	all := bounds.Functions(rand.New(rand.NewPCG(1, 1)))
	all["env"] = func(name string) string {
		if v, ok := values[name]; ok {
			return fmt.Sprint(v)
		}
		return ""
	}
	return all
}

// renderConfig renders a configuration file with its values. It stops when the time of limits is over.
func renderConfig(limits *bounds.Bounds, file string, text []byte, values map[string]any) (string, error) {
	if err := limits.Late(); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	limits = limits.Another()
	t, err := template.New(file).Option("missingkey=error").Funcs(limits.Functions(configFunctions(values))).Parse(string(text))
	if err != nil {
		return "", templateError(err)
	}
	limits.Count(t)
	var lack []string
	for _, name := range bounds.Names(string(text)) {
		if _, ok := values[name]; !ok {
			lack = append(lack, name)
		}
	}
	var b bytes.Buffer
	err = t.Execute(limits.Writer(&b), values)
	for name := textValue(err, values); name != ""; name = textValue(err, values) {
		values[name] = fmt.Sprint(values[name])
		b.Reset()
		err = t.Execute(limits.Writer(&b), values)
	}
	switch {
	case err != nil && len(lack) > 0 && strings.Contains(err.Error(), "map has no entry"):
		return "", fmt.Errorf("%s: it needs values: %s (add --set %s=..., or --set %s= for an empty one)", file, strings.Join(lack, ", "), lack[0], lack[0])
	case err != nil:
		return "", templateError(err)
	}
	return b.String(), nil
}

// executing matches what text/template inserts after the line of an error: the column, the file again, and the function.
var executing = regexp.MustCompile(`:\d+: executing "[^"]*" at (<.*?>): (?:error calling \w+: )?`)

// templateError returns an error of text/template in one line. For a limit that was exceeded, it omits the name of the inserted
// function that found it.
func templateError(err error) error {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: "), "\n", " ")
	if limit, ok := errors.AsType[*bounds.Error](err); ok {
		where, _, _ := strings.Cut(text, ": executing ")
		return fmt.Errorf("%s: %w", where, limit)
	}
	text = executing.ReplaceAllString(text, ": $1: ")
	if strings.Contains(text, "incompatible types for comparison") || strings.Contains(text, "wrong type for value") {
		text += " (check the values of --set)"
	}
	return errors.New(text)
}

// typeErrors are texts in errors of text/template about a value of another type.
var typeErrors = regexp.MustCompile(`<([^>]*)>: .*(?:incompatible types for comparison|wrong type for value; expected string|len of type)`)

// textValue returns the name of a number or bool that a template uses as text, according to an error. kube-burner reads values
// as text from environment variables, and typed from files; --set does not tell which of them a configuration expects.
func textValue(err error, values map[string]any) string {
	if err == nil {
		return ""
	}
	if m := typeErrors.FindStringSubmatch(err.Error()); m != nil {
		for _, field := range fieldName.FindAllStringSubmatch(m[1], -1) {
			if _, text := values[field[1]].(string); values[field[1]] != nil && !text {
				return field[1]
			}
		}
	}
	return ""
}

var fieldName = regexp.MustCompile(`\.([A-Za-z_]\w*)`)

// ParseValues parses NAME=VALUE pairs of the flag --set. Whole numbers without leading zeros, true and false are typed, as helm does
// it. Other numbers are typed only if fractions is set. All other values are strings.
func ParseValues(pairs []string, fractions bool) (map[string]any, error) {
	values := map[string]any{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--set %s: must be NAME=VALUE", pair)
		}
		values[name] = typedValue(text, fractions)
	}
	return values, nil
}

func typedValue(text string, fractions bool) any {
	switch text {
	case "true":
		return true
	case "false":
		return false
	}
	if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
		return n
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && fractions {
		return n
	}
	return text
}
