// Package render adapts the built-in rules and dashboards to another Prometheus server. That server may use other job
// names and another cluster label, may require more matchers, and may not scrape all components.
//
// The package replaces names in expressions and does not change the rest of their text. It removes rules, operands of
// "or", panels, links and whole files that use only left-out components.
package render

import (
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/dashboards"
	"github.com/stormglass/stormglass/deploy"
)

// Generator is the job name of the load generator.
const Generator = "loadgen"

// Options configure Render. The zero value renders the rules and dashboards unchanged.
type Options struct {
	// Jobs maps the job names of Stormglass to the job names of the installation. An empty name leaves the component out.
	Jobs map[string]string
	// ClusterLabel is the installation's label for the cluster; empty means "cluster".
	ClusterLabel string
	// Selector holds matchers to add to each selector of a scraped series, such as `tier="prod"`.
	Selector string
	// RunbookBase is the URL of the folder docs, the prefix of each runbook_url. Empty means alerts.Pages.
	RunbookBase string
	// Namespace is the namespace of the Kubernetes objects; empty means "monitoring". Release is the value of the
	// objects' label "release", by which the operator's Prometheus server finds rules; empty means
	// "kube-prometheus-stack".
	Namespace, Release string
}

// Bundle holds the rendered rules and dashboards as files.
type Bundle struct {
	// Files holds the files by path: rules in rules/*.yaml and dashboards in dashboards/*.json. It also holds both as
	// Kubernetes objects in kubernetes/ and as a monitoring mixin in mixin/.
	Files map[string][]byte
	// LeftOut lists the alerts and dashboards that the bundle omits, because they use only left-out components.
	LeftOut []string
}

// Jobs returns the job names of Stormglass. They are the valid keys of Options.Jobs.
func Jobs() []string {
	return []string{"cloud-controller-manager", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", Generator}
}

// renderer renders rules and dashboards. Its Options are valid.
type renderer struct {
	Options
	parser parser.Parser
	// gone is the set of recorded series for which the bundle has no recording rule.
	gone map[string]bool
}

// Render renders the built-in rules and dashboards. It fails if an option is invalid.
func Render(o Options) (Bundle, error) {
	r, err := newRenderer(o)
	if err != nil {
		return Bundle{}, err
	}
	rules, err := r.rules(alerts.Files())
	if err != nil {
		return Bundle{}, err
	}
	boards, err := r.dashboards(dashboards.JSON())
	if err != nil {
		return Bundle{}, err
	}
	b := Bundle{Files: map[string][]byte{}, LeftOut: slices.Concat(rules.leftOut, boards.leftOut)}
	objects, err := deploy.Objects("loadgen alerts render", rules.files, boards.files)
	if err != nil {
		return Bundle{}, err
	}
	for name, text := range rules.files {
		b.Files["rules/"+name] = []byte(text)
	}
	for name, text := range boards.files {
		b.Files["dashboards/"+name] = []byte(text)
	}
	for name, text := range objects {
		b.Files["kubernetes/"+name] = text
	}
	mixed, err := mixin(rules.files, boards.files)
	if err != nil {
		return Bundle{}, err
	}
	for name, text := range mixed {
		b.Files["mixin/"+name] = []byte(text)
	}
	b.Files["kubernetes/kustomization.yaml"] = fmt.Appendf(nil, `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: %s
resources: [rules, dashboards]
labels:
  - pairs: {release: %s}
`, r.Namespace, r.Release)
	return b, nil
}

// rendered holds rendered files by name, and the names of the alerts and dashboards that the bundle omits.
type rendered struct {
	files   map[string]string
	leftOut []string
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func newRenderer(o Options) (*renderer, error) {
	if o.ClusterLabel == "" {
		o.ClusterLabel = clusterLabel
	}
	if o.RunbookBase == "" {
		o.RunbookBase = alerts.Pages
	}
	if o.Namespace == "" {
		o.Namespace = deploy.Namespace
	}
	if o.Release == "" {
		o.Release = "kube-prometheus-stack"
	}
	r := &renderer{Options: o, parser: parser.NewParser(parser.Options{}), gone: map[string]bool{}}
	if err := r.checkJobs(); err != nil {
		return nil, err
	}
	if !model.LegacyValidation.IsValidLabelName(o.ClusterLabel) {
		return nil, fmt.Errorf("cluster label %q is not a label name (letters, digits and _)", o.ClusterLabel)
	}
	if slices.Contains([]string{"job", "instance", "le"}, o.ClusterLabel) {
		return nil, fmt.Errorf("cluster label %q already has another meaning in Prometheus (use the label that distinguishes clusters)", o.ClusterLabel)
	}
	if u, err := url.Parse(o.RunbookBase); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("runbook base %q is not a URL (write %s)", o.RunbookBase, alerts.Pages)
	}
	for _, name := range []string{o.Namespace, o.Release} {
		if !dnsLabel.MatchString(name) {
			return nil, fmt.Errorf("%q is not a valid name in Kubernetes (use lowercase letters, digits and -)", name)
		}
	}
	return r, r.checkSelector()
}

func (r *renderer) checkJobs() error {
	kept := map[string]string{}
	for _, ours := range slices.Sorted(maps.Keys(r.Jobs)) {
		if !slices.Contains(Jobs(), ours) {
			return fmt.Errorf("no rule and no dashboard uses job %q (write one of %s)", ours, strings.Join(Jobs(), ", "))
		}
	}
	for _, ours := range Jobs() {
		theirs := r.job(ours)
		if theirs == "" {
			continue
		}
		if other := kept[theirs]; other != "" {
			return fmt.Errorf("job %q is given as the job of %s and of %s (relabel one of them, or leave one out: %s=)", theirs, other, ours, ours)
		}
		kept[theirs] = ours
	}
	if len(kept) == 0 {
		return fmt.Errorf("every job is left out, so nothing would be rendered")
	}
	return nil
}

func (r *renderer) checkSelector() error {
	r.Selector = strings.Trim(strings.TrimSpace(r.Selector), ",")
	if r.Selector == "" {
		return nil
	}
	matchers, err := r.parser.ParseMetricSelector("{" + r.Selector + "}")
	if err != nil {
		return fmt.Errorf("%q is not a list of matchers: %s (write them as in PromQL: tier=\"prod\")", r.Selector, strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel || m.Name == "job" {
			return fmt.Errorf("%q matches %s, which the rules already match (use a label that distinguishes the cluster)", r.Selector, m.Name)
		}
	}
	return nil
}

// job returns the installation's name for a job of Stormglass, or "" if the installation does not scrape the job.
func (r *renderer) job(ours string) string {
	theirs, named := r.Jobs[ours]
	if !named {
		return ours
	}
	return theirs
}

// scraped reports whether the installation scrapes a job of Stormglass.
func (r *renderer) scraped(ours string) bool { return r.job(ours) != "" }

func sortedNames(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

// sorted calls f with each file that matches a pattern, in the order of their names.
func sorted(files fs.FS, pattern string, f func(name string, text []byte) error) error {
	names, err := fs.Glob(files, pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := f(name, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
