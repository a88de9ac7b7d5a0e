package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Create creates an object of the cluster as the user, with the run's labels. One of that
// name that is not the run's own is an error.
func (t *Target) Create(ctx context.Context, m scenario.Manifest) error {
	return t.create(ctx, m, nil)
}

// tryCreates asks the API server to check what actions will create, so that none is
// refused in the middle of a run.
func (t *Target) tryCreates(ctx context.Context) error {
	for _, m := range t.manifests {
		if err := t.create(ctx, m, []string{metav1.DryRunAll}); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) create(ctx context.Context, m scenario.Manifest, dryRun []string) error {
	client, err := dynamic.NewForConfig(t.Admin)
	if err != nil {
		return fmt.Errorf("client of cluster %s: %w", t.Cluster.Name, err)
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
	of := client.Resource(m.Resource)
	_, err = of.Create(ctx, o, metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		there, getErr := of.Get(ctx, m.Name, metav1.GetOptions{})
		if getErr == nil && there.GetLabels()[RunLabel] == t.Labels[RunLabel] {
			return nil // the answer to an earlier attempt was lost
		}
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", m, err)
	}
	return nil
}
