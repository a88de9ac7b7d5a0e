package job

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/manifest"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// These are CEL conditions that the writes of a run must meet. RBAC rules cannot select namespaces by prefix, and the
// names of a run's namespaces are not known in advance. So RBAC allows writes in all namespaces, and admission policies
// restrict the run's ServiceAccount to the run's namespaces and nodes.
const (
	ofNamespace = `request.namespace.startsWith('stormglass-') || request.namespace == '%s'`
	ofLease     = `request.resource.resource == 'leases' && (request.namespace == 'default' && request.name in ['', 'stormglass-run'] || request.namespace == 'kube-node-lease' && request.name.startsWith('sg-'))`
	ofEvent     = `request.resource.resource == 'events' && request.namespace == 'default' && request.operation == 'DELETE'`
	ofPod       = `request.resource.resource == 'pods' && request.operation == 'DELETE' && oldObject != null && has(oldObject.spec.nodeName) && oldObject.spec.nodeName.startsWith('sg-')`
	ofCluster   = `request.resource.resource == 'namespaces' ? %s : request.name.startsWith('sg-')`
)

// confinement returns the admission policies that restrict a ServiceAccount, with their bindings. The first policy
// covers namespaced objects. It skips the namespaces of runs, so that it does not slow down measured requests. The
// second policy covers namespaces and nodes. Without it, the ServiceAccount could label other namespaces so that the
// first policy skips them. groups are the run's namespace groups, whose names do not begin with "stormglass-".
func confinement(account, namespace, name string, groups []scenario.NamespaceGroup, meta func(name string) metav1.ObjectMeta) (all []runtime.Object) {
	every := []admissionv1.OperationType{admissionv1.OperationAll}
	rule := func(scope admissionv1.ScopeType, groups []string, resources ...string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: every, Rule: admissionv1.Rule{APIGroups: groups, APIVersions: []string{"*"}, Resources: resources, Scope: &scope},
		}}
	}
	own := `request.name.startsWith('stormglass-')`
	for i := range groups {
		own += " || request.name in ['" + strings.Join(groups[i].Names(), "', '") + "']"
	}
	for _, p := range []struct {
		name, expression, message string
		match                     admissionv1.MatchResources
	}{
		{
			name:       name,
			expression: strings.Join([]string{fmt.Sprintf(ofNamespace, namespace), ofLease, ofEvent, ofPod}, " || "),
			message:    "this run writes to its own namespaces only: stormglass-*, and " + namespace,
			match: admissionv1.MatchResources{
				ResourceRules: []admissionv1.NamedRuleWithOperations{rule(admissionv1.NamespacedScope, []string{"*"}, "*/*")},
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: cluster.RunLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
				}},
			},
		},
		{
			name:       name + "-cluster",
			expression: fmt.Sprintf(ofCluster, own),
			message:    "this run changes its own namespaces (stormglass-*) and nodes (sg-*) only",
			match: admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
				rule(admissionv1.ClusterScope, []string{""}, "namespaces", "namespaces/*", "nodes", "nodes/*"),
				rule(admissionv1.ClusterScope, []string{"storage.k8s.io"}, "csinodes"),
			}},
		},
	} {
		const group = "admissionregistration.k8s.io/v1"
		all = append(all,
			&admissionv1.ValidatingAdmissionPolicy{
				TypeMeta: manifest.Type(group, "ValidatingAdmissionPolicy"), ObjectMeta: meta(p.name),
				Spec: admissionv1.ValidatingAdmissionPolicySpec{
					FailurePolicy:    new(admissionv1.Fail),
					MatchConstraints: &p.match,
					MatchConditions:  []admissionv1.MatchCondition{{Name: "of-the-run", Expression: fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'", namespace, account)}},
					Validations:      []admissionv1.Validation{{Expression: p.expression, Message: p.message}},
				},
			},
			&admissionv1.ValidatingAdmissionPolicyBinding{
				TypeMeta: manifest.Type(group, "ValidatingAdmissionPolicyBinding"), ObjectMeta: meta(p.name),
				Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: p.name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
			})
	}
	return all
}
