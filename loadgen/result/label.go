package result

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of Run.Labels: the number of labels, and the length of a value in characters.
const (
	maxLabels     = 32
	maxLabelValue = 63
)

var labelName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// CheckLabels returns an error if a run cannot have these labels.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("a run has at most %d labels, but these are %d", maxLabels, len(labels))
	}
	for name, value := range labels {
		if err := checkLabel(name, value); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(name, value string) error {
	switch {
	case !labelName.MatchString(name):
		return fmt.Errorf("%.80q is not the name of a label (use at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit)", name)
	case value == "":
		return fmt.Errorf("the label %s has no value (write %[1]s=VALUE)", name)
	case utf8.RuneCountInString(value) > maxLabelValue:
		return fmt.Errorf("the value of the label %s has more than %d characters (use a shorter value)", name, maxLabelValue)
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the value of the label %s has characters that cannot be printed (remove them)", name)
	}
	return nil
}

// ParseLabels parses labels, each written as NAME=VALUE.
func ParseLabels(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	labels := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%.80q is not a label (write NAME=VALUE, for example team=core)", text)
		}
		if _, twice := labels[name]; twice {
			return nil, fmt.Errorf("the label %.80q appears twice (remove one)", name)
		}
		labels[name] = value
	}
	return labels, CheckLabels(labels)
}
