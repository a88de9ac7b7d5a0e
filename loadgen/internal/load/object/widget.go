package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// The custom resource "widgets". A load that uses it creates its CustomResourceDefinition.
const (
	widgetGroup   = "load.stormglass.dev"
	widgetVersion = "v1"
	widgetKind    = "Widget"
)

const (
	definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	// definedWithin is the time limit for the API server to serve widgets after their definition is created. The API
	// server usually needs a second or two.
	definedWithin = time.Minute
	definedPoll   = 100 * time.Millisecond
)

// widgetDefinition returns the CustomResourceDefinition of widgets. The spec of a widget may contain any fields.
func widgetDefinition(labels map[string]string) ([]byte, error) {
	return json.Marshal(object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": scenario.WidgetResource, "labels": labels},
		"spec": object{
			"group": widgetGroup, "scope": "Namespaced",
			"names": object{"plural": "widgets", "singular": "widget", "kind": widgetKind, "listKind": widgetKind + "List"},
			"versions": []any{object{
				"name": widgetVersion, "served": true, "storage": true,
				"schema": object{"openAPIV3Schema": object{
					"type":       "object",
					"properties": object{"spec": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			}},
		},
	})
}

// defineWidgets creates the CustomResourceDefinition of widgets with the given labels, unless it exists, and waits
// until widgets are served. If the client may not read definitions, widgets must be served already.
func defineWidgets(ctx context.Context, a *asker, labels map[string]string) error {
	what := "customresourcedefinition " + scenario.WidgetResource
	body, err := widgetDefinition(labels)
	if err != nil {
		return fmt.Errorf("create %s: %w", what, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, definedWithin, fmt.Errorf("not established within %s", definedWithin))
	defer cancel()
	for {
		done, err := defineOnce(ctx, a, what, body)
		if done || err != nil {
			return err
		}
		if !apiclient.Pause(ctx, definedPoll) {
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		}
	}
}

func defineOnce(ctx context.Context, a *asker, what string, body []byte) (done bool, err error) {
	r, err := a.ask(ctx, query{method: http.MethodGet, path: definitions + "/" + scenario.WidgetResource})
	switch {
	case err != nil:
		return false, fmt.Errorf("get %s: %w", what, err)
	case r.status == http.StatusForbidden:
		if _, err := resolve(ctx, a, scenario.WidgetResource, widgetGroup+"/"+widgetVersion); err != nil {
			return false, errors.Join(failed("get", what, r, nil), err)
		}
		return true, nil
	case r.status == http.StatusNotFound:
		r, err = a.ask(ctx, query{method: http.MethodPost, path: definitions, typ: jsonType, body: body})
		return false, failed("create", what, r, err, http.StatusConflict)
	case !r.success():
		return false, failed("get", what, r, nil)
	}
	var crd struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
		Status struct {
			Conditions []struct{ Type, Status string } `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(r.body, &crd); err != nil {
		return false, fmt.Errorf("get %s: %w", what, err)
	}
	established := slices.ContainsFunc(crd.Status.Conditions, func(c struct{ Type, Status string }) bool {
		return c.Type == "Established" && c.Status == "True"
	})
	if crd.Metadata.DeletionTimestamp != nil || !established {
		return false, nil // an earlier run's cleanup may be deleting the definition; create it again afterwards
	}
	// The API server sets the condition Established before it serves the resource and lists it in discovery.
	r, err = a.ask(ctx, query{method: http.MethodGet, path: "/apis/" + widgetGroup + "/" + widgetVersion + "/widgets?limit=1"})
	if err != nil {
		return false, fmt.Errorf("list %s: %w", scenario.WidgetResource, err)
	}
	if r.status == http.StatusNotFound {
		return false, nil
	}
	_, err = resolve(ctx, a, scenario.WidgetResource, widgetGroup+"/"+widgetVersion)
	return err == nil, nil
}

// DefineWidgets creates the CustomResourceDefinition of widgets with the given labels, unless it exists, and waits
// until widgets are served.
func DefineWidgets(ctx context.Context, config *rest.Config, labels map[string]string) error {
	a, err := newAsker(config)
	if err != nil {
		return err
	}
	defer a.close()
	return defineWidgets(ctx, a, labels)
}
