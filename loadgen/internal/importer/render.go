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

// renderConfig renders a configuration file of kube-burner with its values. It stops when the time of limits is over. Random
// functions return the same values in each import. env reads from values instead of from the environment.
func renderConfig(limits *bounds.Bounds, file string, text []byte, values map[string]any) (string, error) {
	if err := limits.Late(); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	limits = limits.Another()
	functions := bounds.Functions(rand.New(rand.NewPCG(1, 1)))
	functions["env"] = func(name string) string {
		if v, ok := values[name]; ok {
			return fmt.Sprint(v)
		}
		return ""
	}
	t, err := template.New(file).Option("missingkey=error").Funcs(limits.Functions(functions)).Parse(string(text))
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
		n, notWhole := strconv.Atoi(text)
		f, notNumber := strconv.ParseFloat(text, 64)
		switch {
		case text == "true" || text == "false":
			values[name] = text == "true"
		case notWhole == nil && strconv.Itoa(n) == text:
			values[name] = n
		case notNumber == nil && fractions:
			values[name] = f
		default:
			values[name] = text
		}
	}
	return values, nil
}
