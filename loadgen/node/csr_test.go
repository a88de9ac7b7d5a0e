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

// Others write to a new request too: a conflict is no reason to give a node up.
func TestApprovalOutlastsAConflict(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
		a.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest).Name = "node-1-x" // as the server does for generateName
		return false, nil, nil
	})
	approvals := 0
	client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if approvals++; approvals == 1 {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "certificatesigningrequests"}, "node-1-x", nil)
		}
		approved := a.(clienttesting.UpdateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
		if len(approved.Status.Conditions) != 1 {
			t.Errorf("conditions %v", approved.Status.Conditions)
		}
		approved.Status.Certificate = []byte("signed")
		return false, nil, nil
	})
	certificate, err := (&csrSigner{}).sign(t.Context(), client, "node-1", certificatesv1.KubeAPIServerClientKubeletSignerName, []byte("request"))
	if err != nil || string(certificate) != "signed" || approvals != 2 {
		t.Errorf("%q after %d approvals, %v", certificate, approvals, err)
	}
}
