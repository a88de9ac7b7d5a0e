package testplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/internal/userfile"
)

const establishedPoll = 50 * time.Millisecond

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func (p *Plane) admin() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", p.running.Cluster().Kubeconfigs["admin"])
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1
	return cfg, nil
}

// define creates the CustomResourceDefinitions in the files of Plane.CRDs, and returns when the API server serves all of
// them.
func (p *Plane) define() error {
	if len(p.CRDs) == 0 {
		return nil
	}
	cfg, err := p.admin()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for _, file := range p.CRDs {
		all, err := readDefinitions(file)
		if err != nil {
			return fmt.Errorf("Plane.CRDs: %w", err)
		}
		for _, d := range all {
			if err := establish(ctx, client.Resource(definitions), d); err != nil {
				return fmt.Errorf("Plane.CRDs: %s: CustomResourceDefinition %s: %w", file, d.GetName(), err)
			}
		}
	}
	return nil
}

func readDefinitions(file string) ([]*unstructured.Unstructured, error) {
	text, err := userfile.Read(file, 16*userfile.Text) // operators ship megabytes of definitions
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)); ; {
		d := &unstructured.Unstructured{}
		err := decoder.Decode(&d.Object)
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, fmt.Errorf("%s: the file contains no CustomResourceDefinition", file)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", file, err)
		case len(d.Object) == 0: // the document has only comments
			continue
		case d.GetKind() != "CustomResourceDefinition":
			return nil, fmt.Errorf("%s: %s %s is not a CustomResourceDefinition", file, d.GetKind(), d.GetName())
		}
		all = append(all, d)
	}
}

// establish creates a CustomResourceDefinition and waits until its condition Established is true.
func establish(ctx context.Context, client dynamic.ResourceInterface, d *unstructured.Unstructured) error {
	if _, err := client.Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, establishedPoll, true, func(ctx context.Context) (bool, error) {
		now, err := client.Get(ctx, d.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
		for _, c := range conditions {
			if of, _ := c.(map[string]any); of["type"] == "Established" && of["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("its condition Established is not true: %w", err)
	}
	return nil
}
