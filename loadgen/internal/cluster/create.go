package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Create creates an object with the run's labels, as the user. It creates a namespaced object in each of the run's
// namespaces. It fails if the object already exists and does not belong to the run.
func (t *Target) Create(ctx context.Context, m scenario.Manifest) error {
	return t.create(ctx, m, nil)
}

// tryCreates creates, as a dry run, the objects that the setup and actions will create, to report a refusal before the
// run starts. If namespaced is true, it creates the namespaced objects, and otherwise the cluster-scoped ones.
func (t *Target) tryCreates(ctx context.Context, namespaced bool) error {
	for _, m := range t.manifests {
		if m.Namespaced != namespaced {
			continue
		}
		if err := t.create(ctx, m.Objects()[0], []string{metav1.DryRunAll}); err != nil {
			return err
		}
	}
	return nil
}

// createSetup creates the objects of the scenario's setup. It waits until the API server serves the custom resources
// that they define, and until the status of their ResourceQuotas is set. Before that, the API server refuses objects
// that a quota counts.
func (t *Target) createSetup(ctx context.Context, client kubernetes.Interface) error {
	defines := false
	for _, m := range t.plan.SetupManifests() {
		all := m.Objects()
		err := load.Parallel(ctx, len(all), func(ctx context.Context, i int) error { return t.Create(ctx, all[i]) })
		if err != nil {
			return err
		}
		defines = defines || m.Defines()
	}
	if defines {
		done := t.waiting("the cluster to serve the custom resources")
		err := t.AwaitServed(ctx, t.plan.SetupManifests())
		done()
		if err != nil {
			return err
		}
	}
	return t.awaitQuotas(ctx, client)
}

func (t *Target) awaitQuotas(ctx context.Context, client kubernetes.Interface) error {
	if !slices.ContainsFunc(t.plan.SetupManifests(), func(m scenario.Manifest) bool { return m.Kind == "ResourceQuota" }) {
		return nil
	}
	defer t.waiting("the cluster to update the status of ResourceQuotas")()
	for _, namespace := range t.namespaces {
		err := await(ctx, "the status of resource quotas in "+namespace, func(ctx context.Context) (bool, error) {
			list, err := client.CoreV1().ResourceQuotas(namespace).List(ctx, metav1.ListOptions{LabelSelector: ownedBy(t.runID)})
			if err != nil {
				return false, err
			}
			return !slices.ContainsFunc(list.Items, func(q corev1.ResourceQuota) bool { return len(q.Status.Used) < len(q.Spec.Hard) }), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// servedPoll is the pause between discovery requests. It is long because these requests are also load.
const servedPoll = 500 * time.Millisecond

// AwaitServed waits until the API server serves the custom resources that objects define. It checks discovery, which
// lists a resource once the resource is established.
func (t *Target) AwaitServed(ctx context.Context, objects []scenario.Manifest) error {
	client, err := discovery.NewDiscoveryClientForConfig(t.Admin)
	if err != nil {
		return fmt.Errorf("create a client for cluster %s: %w", t.Cluster.Name, err)
	}
	awaited := definedBy(objects)
	for {
		missing, err := notServed(client, awaited)
		if err == nil && missing == "" {
			return nil
		}
		if !apiclient.Pause(ctx, servedPoll) {
			return fmt.Errorf("custom resource %s is not served: %w", missing, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// definedBy returns the resources that objects define, by group and version.
func definedBy(objects []scenario.Manifest) map[string][]string {
	all := map[string][]string{}
	for _, m := range objects {
		if !m.Defines() {
			continue
		}
		for _, one := range m.Objects() {
			plural, group, _ := strings.Cut(one.Name, ".")
			spec, _ := one.Object["spec"].(map[string]any)
			versions, _ := spec["versions"].([]any)
			for _, v := range versions {
				if version, _ := v.(map[string]any); version["served"] == true {
					of := fmt.Sprintf("%s/%v", group, version["name"])
					all[of] = append(all[of], plural)
				}
			}
		}
	}
	return all
}

// notServed returns an awaited resource that discovery does not list, or "" if it lists all. It removes a group
// version from awaited when all its resources are served.
func notServed(client discovery.DiscoveryInterface, awaited map[string][]string) (string, error) {
	for of, plurals := range awaited {
		list, err := client.ServerResourcesForGroupVersion(of)
		if apierrors.IsNotFound(err) {
			return plurals[0] + " of " + of, nil
		}
		if err != nil {
			return "", fmt.Errorf("discover the resources of %s: %w", of, err)
		}
		served := map[string]bool{}
		for _, r := range list.APIResources {
			served[r.Name] = true
		}
		for _, plural := range plurals {
			if !served[plural] {
				return plural + " of " + of, nil
			}
		}
		delete(awaited, of)
	}
	return "", nil
}

func (t *Target) create(ctx context.Context, m scenario.Manifest, dryRun []string) error {
	client, err := dynamic.NewForConfig(t.Admin)
	if err != nil {
		return fmt.Errorf("create a client for cluster %s: %w", t.Cluster.Name, err)
	}
	text, err := json.Marshal(m.Object)
	if err != nil {
		return fmt.Errorf("write %s as JSON: %w", m, err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("read %s: %w", m, err)
	}
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, t.meta("").Labels)
	o.SetLabels(labels)
	if !m.Namespaced {
		o.SetOwnerReferences(append(o.GetOwnerReferences(), t.owner()...))
	}
	t.confine(m, o)
	t.setConversion(m, o)
	for _, namespace := range t.namespacesOf(m) {
		if err := t.createIn(ctx, client.Resource(m.Resource).Namespace(namespace), o, dryRun); err != nil {
			return fmt.Errorf("create %s: %w", m, err)
		}
	}
	return nil
}

// namespacesOf returns the namespaces in which the run creates an object, or only "" for a cluster-scoped object.
func (t *Target) namespacesOf(m scenario.Manifest) []string {
	if m.Namespaced {
		return t.namespaces
	}
	return []string{""}
}

func (t *Target) createIn(ctx context.Context, of dynamic.ResourceInterface, o *unstructured.Unstructured, dryRun []string) error {
	_, err := of.Create(ctx, o, metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		there, getErr := of.Get(ctx, o.GetName(), metav1.GetOptions{})
		if getErr == nil && there.GetLabels()[RunLabel] == t.Labels[RunLabel] {
			return nil // an earlier attempt created the object, but its response was lost
		}
	}
	return err
}

// setConversion sets the plane's conversion webhook in a CustomResourceDefinition that has the conversion strategy
// Webhook but no webhook.
func (t *Target) setConversion(m scenario.Manifest, o *unstructured.Unstructured) {
	if t.converts != nil && m.WantsConversion() {
		_ = unstructured.SetNestedMap(o.Object, t.converts, "spec", "conversion", "webhook")
	}
}

// confine limits an admission policy to namespaced objects, and its binding to the run's namespaces, so that it neither
// checks nor changes other users' requests.
func (t *Target) confine(m scenario.Manifest, o *unstructured.Unstructured) {
	switch m.Kind {
	case "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
		constraints, _, _ := unstructured.NestedMap(o.Object, "spec", "matchConstraints")
		rules, _ := constraints["resourceRules"].([]any)
		for _, r := range rules {
			if rule, ok := r.(map[string]any); ok {
				rule["scope"] = "Namespaced"
			}
		}
		if len(rules) > 0 {
			_ = unstructured.SetNestedMap(o.Object, constraints, "spec", "matchConstraints")
		}
	case "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding":
		_ = unstructured.SetNestedField(o.Object, t.Labels[RunLabel], "spec", "matchResources", "namespaceSelector", "matchLabels", RunLabel)
	}
}
