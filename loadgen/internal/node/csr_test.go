package node

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// The cluster's own approver also writes to a new request. A conflict with it does
// not fail the node, whether it has approved the request or not.
func TestApprovalOutlastsAConflict(t *testing.T) {
	for name, approved := range map[string]bool{"not yet approved": false, "approved by the cluster": true} {
		client := fake.NewClientset()
		requests := schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "certificatesigningrequests"}
		client.PrependReactor("create", requests.Resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			a.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest).Name = "node-1-x" // as the server does for generateName
			return false, nil, nil
		})
		tries := 0
		client.PrependReactor("update", requests.Resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			request := a.(clienttesting.UpdateAction).GetObject().(*certificatesv1.CertificateSigningRequest).DeepCopy()
			if len(request.Status.Conditions) != 1 {
				t.Errorf("%s: conditions %v", name, request.Status.Conditions)
			}
			request.Status.Certificate = []byte("signed")
			tries++
			if tries > 1 || approved {
				if err := client.Tracker().Update(requests, request, ""); err != nil {
					t.Error(err)
				}
			}
			if tries == 1 {
				return true, nil, apierrors.NewConflict(requests.GroupResource(), request.Name, nil)
			}
			return true, request, nil
		})
		certificate, err := (&csrSigner{}).sign(t.Context(), client, "node-1", certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth, []byte("request"))
		if want := map[bool]int{false: 2, true: 1}[approved]; err != nil || string(certificate) != "signed" || tries != want {
			t.Errorf("%s: %q after %d tries, %v; want it after %d", name, certificate, tries, err, want)
		}
	}
}
