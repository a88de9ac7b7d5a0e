package alerting

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

const (
	// maxRules is the maximum number of rules in a file or directory. It limits the time to find the recording rules on
	// which an alert depends.
	maxRules = 5_000
	// maxFiles is the maximum total size of the files of a directory in bytes.
	maxFiles = 64 << 20
	// minEvery is the minimum evaluation interval of a group, because the shortest scrape interval of a run is a
	// second.
	minEvery = time.Second
)

// Read reads the rules in a file or, if path is a directory, in its *.yaml, *.yml and *.json files. Each file contains
// Prometheus rules (groups:), PrometheusRule objects or Lists of them, in one or more documents. Read skips other
// Kubernetes objects; note names their kinds. An empty note means that all objects were read.
func Read(path string) (set Ruleset, note string, err error) {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = listed(path); err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, err)
		}
	}
	size := 0
	var others []string // kinds of the skipped objects
	var errs []error
	for _, file := range files {
		text, err := userfile.Read(file, userfile.Text)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", file, err)
		}
		if size += len(text); size > maxFiles {
			return nil, "", fmt.Errorf("%s: its files are larger than %d MiB in total", path, maxFiles>>20)
		}
		rules, skipped, err := parseFile(file, text)
		set, others, errs = append(set, rules...), append(others, skipped...), append(errs, err)
	}
	err = errors.Join(errs...)
	if len(set) == 0 && len(others) > 0 && err == nil {
		return nil, "", &strictyaml.Error{File: path, Msg: "no rules, only " + kinds(others), Hint: "write groups: as for Prometheus, or kind: PrometheusRule"}
	}
	if len(others) > 0 {
		note = fmt.Sprintf("%s: skipped objects that are not rules: %s", path, kinds(others))
	}
	if n := len(set.where(func(rulefmt.Rule) bool { return true })); n > maxRules {
		err = errors.Join(err, &strictyaml.Error{File: path, Msg: fmt.Sprintf("it has %d rules, the limit is %d", n, maxRules), Hint: "split it"})
	}
	return set, note, err
}

func listed(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && len(files) == 0 {
		err = errors.New("the directory has no *.yaml, *.yml or *.json")
	}
	return files, userfile.Cause(err)
}

func kinds(all []string) string {
	slices.Sort(all)
	if all = slices.Compact(all); len(all) > 5 {
		all = append(all[:5], "...")
	}
	return strings.Join(all, ", ")
}

// Parse is like Read for the text of one file. file is its name in errors, which have one line for each problem.
func Parse(file string, text []byte) (Ruleset, error) {
	set, _, err := parseFile(file, text)
	return set, err
}

// parseFile returns the rules in a file, and the kinds of the objects that it skipped.
func parseFile(file string, text []byte) (set Ruleset, skipped []string, err error) {
	docs, err := strictyaml.Documents(file, text)
	errs := []error{err}
	for len(docs) > 0 {
		doc := docs[0]
		docs = docs[1:]
		var groups Ruleset
		var err error
		switch kind := doc.Text("kind"); kind {
		case "":
			groups, err = parseGroups(doc, "")
		case prometheusRule:
			var o object
			if err = doc.Decode(&o); err == nil && o.APIVersion != operatorAPI {
				err = doc.Errorf("apiVersion", "write apiVersion: "+operatorAPI, "%q has no kind %s", o.APIVersion, kind)
			}
			if o.Spec.Groups != nil && err == nil {
				groups, err = parseGroups(doc, "spec")
			}
		case "List", prometheusRule + "List":
			docs = slices.Concat(doc.Items("items"), docs)
		default:
			skipped = append(skipped, kind)
		}
		set, errs = append(set, groups...), append(errs, err)
	}
	return set, skipped, errors.Join(errs...)
}

// The kind and the API version of the Prometheus operator's rules.
const (
	prometheusRule = "PrometheusRule"
	operatorAPI    = "monitoring.coreos.com/v1"
)

// object is a PrometheusRule.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   any    `yaml:"metadata"`
	Spec       struct {
		Groups any `yaml:"groups"`
	} `yaml:"spec"`
	Status any `yaml:"status"`
}

// parseGroups parses the rule groups in the value at a path of a YAML document. It ignores the field
// partial_response_strategy of Thanos.
func parseGroups(doc *strictyaml.Document, path string) (all Ruleset, err error) {
	text, line, err := doc.Extract(path, "partial_response_strategy")
	if err != nil {
		return nil, err
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, archive.NewParser(), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, ruleErrors(doc.File, text, line, errs)
	}
	for i, g := range groups.Groups {
		if every := time.Duration(g.Interval); every > 0 && every < minEvery {
			at := strings.TrimPrefix(fmt.Sprintf("%s.groups[%d].interval", path, i), ".")
			return nil, doc.Errorf(at, "write interval: 15s", "group %q is evaluated every %v; the minimum is %v, the shortest time between two scrapes of a run", g.Name, every, minEvery)
		}
		all = append(all, alerts.Group{File: doc.File, RuleGroup: g})
	}
	return all, nil
}
