package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// probeLabel is the label of the ConfigMap that a probe creates as a dry run. The label's value is the registration's
// name.
const probeLabel = "stormglass.dev/webhook-probe"

// probeEvery is the interval at which Start and Clear probe the API server.
const probeEvery = 10 * time.Millisecond

// hooks returns the webhooks that are slow or fail, and one more webhook, which is never slow and matches only probes.
// The API server applies all of them at the same time. When it calls the webhook for probes, all webhooks are active.
func (w *Webhook) hooks(bundle []byte) []admissionregistration.ValidatingWebhook {
	f := w.fault
	resource, group, _ := strings.Cut(f.Resource, ".")
	fail := admissionregistration.Fail
	if f.Ignore {
		fail = admissionregistration.Ignore
	}
	var timeout *int32
	if f.TimeoutSeconds > 0 {
		timeout = new(int32(f.TimeoutSeconds))
	}
	hook := func(name, path, group, resource string) admissionregistration.ValidatingWebhook {
		return admissionregistration.ValidatingWebhook{
			Name: name + "." + w.name + ".stormglass.dev",
			ClientConfig: admissionregistration.WebhookClientConfig{
				URL: new("https://" + w.address + path), CABundle: bundle,
			},
			Rules: []admissionregistration.RuleWithOperations{{
				Operations: []admissionregistration.OperationType{admissionregistration.Create},
				Rule: admissionregistration.Rule{
					APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource},
				},
			}},
			SideEffects:             new(admissionregistration.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}
	}
	var all []admissionregistration.ValidatingWebhook
	for i := range max(f.Webhooks, 1) {
		name, path := "review", reviewPath
		if f.Webhooks > 1 || f.Mutates {
			name, path = fmt.Sprintf("review-%d", i), fmt.Sprintf("%s/%d", reviewPath, i)
		}
		review := hook(name, path, group, resource)
		review.FailurePolicy, review.TimeoutSeconds = &fail, timeout
		// The probe must not wait for a slow webhook on configmaps.
		review.ObjectSelector = &meta.LabelSelector{
			MatchExpressions: []meta.LabelSelectorRequirement{{Key: probeLabel, Operator: meta.LabelSelectorOpDoesNotExist}},
		}
		all = append(all, review)
	}
	probe := hook("probe", probePath, "", "configmaps")
	probe.FailurePolicy, probe.TimeoutSeconds = new(admissionregistration.Ignore), new(int32(1))
	probe.ObjectSelector = &meta.LabelSelector{MatchLabels: map[string]string{probeLabel: w.name}}
	return append(all, probe)
}

func (w *Webhook) mutating(hooks []admissionregistration.ValidatingWebhook) []admissionregistration.MutatingWebhook {
	again := admissionregistration.NeverReinvocationPolicy
	if w.fault.Reinvoke {
		again = admissionregistration.IfNeededReinvocationPolicy
	}
	var all []admissionregistration.MutatingWebhook
	for _, h := range hooks {
		all = append(all, admissionregistration.MutatingWebhook{
			Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, FailurePolicy: h.FailurePolicy, TimeoutSeconds: h.TimeoutSeconds,
			ObjectSelector: h.ObjectSelector, SideEffects: h.SideEffects, AdmissionReviewVersions: h.AdmissionReviewVersions,
			ReinvocationPolicy: &again,
		})
	}
	return all
}

const managedBy, us = "app.kubernetes.io/managed-by", "stormglass"

func (w *Webhook) register(ctx context.Context, bundle []byte) (err error) {
	object := meta.ObjectMeta{Name: w.name, Labels: map[string]string{managedBy: us}}
	hooks, api := w.hooks(bundle), w.client.AdmissionregistrationV1()
	if w.fault.Mutates {
		_, err = api.MutatingWebhookConfigurations().Create(ctx, &admissionregistration.MutatingWebhookConfiguration{ObjectMeta: object, Webhooks: w.mutating(hooks)}, meta.CreateOptions{})
	} else {
		_, err = api.ValidatingWebhookConfigurations().Create(ctx, &admissionregistration.ValidatingWebhookConfiguration{ObjectMeta: object, Webhooks: hooks}, meta.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return nil
}

// refused reports whether an error of register means that no registration exists or will appear: the client never
// reached the API server, or the API server refused the registration. A status of 5xx is not a refusal, because etcd
// may have received the write.
func refused(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && answer.Status().Code/100 == 4
}

// Unregister removes a registration and reports whether the registration existed. A missing registration is not an
// error.
func Unregister(ctx context.Context, client kubernetes.Interface, name string) (found bool, err error) {
	api := client.AdmissionregistrationV1()
	if err = api.ValidatingWebhookConfigurations().Delete(ctx, name, meta.DeleteOptions{}); apierrors.IsNotFound(err) {
		err = api.MutatingWebhookConfigurations().Delete(ctx, name, meta.DeleteOptions{})
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return true, err
}

// Registered returns the names of all existing registrations that Start created.
func Registered(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	api, ours := client.AdmissionregistrationV1(), meta.ListOptions{LabelSelector: managedBy + "=" + us}
	validating, err := api.ValidatingWebhookConfigurations().List(ctx, ours)
	if err != nil {
		return nil, err
	}
	mutating, err := api.MutatingWebhookConfigurations().List(ctx, ours)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range validating.Items {
		names = append(names, r.Name)
	}
	for _, r := range mutating.Items {
		names = append(names, r.Name)
	}
	return names, nil
}

func (w *Webhook) unregister(ctx context.Context) (found bool, err error) {
	if found, err = Unregister(ctx, w.client, w.name); err != nil {
		err = fmt.Errorf("webhook: remove the registration %s: %w", w.name, err)
	}
	return found, err
}

// awaitProbe repeatedly creates a ConfigMap as a dry run. If `asked` is true, it returns when the API server calls the
// webhook for the ConfigMap. If `asked` is false, it returns when the API server no longer calls the webhook.
func (w *Webhook) awaitProbe(ctx context.Context, asked bool) error {
	var failure error
	err := wait.PollUntilContextCancel(ctx, probeEvery, true, func(ctx context.Context) (bool, error) {
		got, err := w.tryProbe(ctx)
		failure = err
		return got == asked, err
	})
	switch {
	case failure != nil:
		return fmt.Errorf("check whether the registration %s is active: %w", w.name, failure)
	case err != nil:
		return fmt.Errorf("the API server has not applied a change to the registration %s yet: %w", w.name, context.Cause(ctx))
	}
	return nil
}

func (w *Webhook) tryProbe(ctx context.Context) (asked bool, err error) {
	select {
	case <-w.probed: // left by an earlier probe
	default:
	}
	probe := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{
		GenerateName: "stormglass-webhook-probe-", Labels: map[string]string{probeLabel: w.name},
	}}
	_, err = w.client.CoreV1().ConfigMaps(meta.NamespaceDefault).Create(ctx, probe, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	if err != nil {
		return false, err
	}
	select {
	case <-w.probed:
		return true, nil
	default:
		return false, nil
	}
}
