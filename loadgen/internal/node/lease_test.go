package node

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// sampleLease returns a Lease as an API server returns it.
func sampleLease(t testing.TB) []byte {
	now, seconds, holder, transitions := metav1.NewMicroTime(time.Unix(1700000000, 123456789)), int32(40), "sg-0", int32(3)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "sg-0", Namespace: "kube-node-lease", UID: "u", ResourceVersion: "4711", CreationTimestamp: metav1.Unix(1700000000, 0),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "sg-0", UID: "n"}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "stormglass-node", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: leaseVersion, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:ownerReferences":{".":{}}},"f:spec":{"f:holderIdentity":{}}}`),
			}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now, AcquireTime: &now, LeaseTransitions: &transitions},
	}
	raw, err := l.Marshal()
	must(t, err)
	return raw
}

// A renewed Lease must equal the old one, except for two fields.
func TestRenewedLeaseKeepsAllElse(t *testing.T) {
	old := sampleLease(t)
	now := time.Unix(1800000000, 987654321)
	raw, err := renewedLease(old, 90, now)
	must(t, err)
	var want, got coordinationv1.Lease
	must(t, want.Unmarshal(old))
	must(t, got.Unmarshal(raw))
	if !got.Spec.RenewTime.Equal(&metav1.MicroTime{Time: now.Truncate(time.Microsecond)}) || *got.Spec.LeaseDurationSeconds != 90 {
		t.Errorf("renewed at %v for %d s", got.Spec.RenewTime, *got.Spec.LeaseDurationSeconds)
	}
	want.Spec.RenewTime, want.Spec.LeaseDurationSeconds = got.Spec.RenewTime, got.Spec.LeaseDurationSeconds
	if want.String() != got.String() {
		t.Errorf("renewed to\n%s, want\n%s", got.String(), want.String())
	}
	if _, err := renewedLease([]byte{0x0a, 0x7f}, 40, now); err == nil {
		t.Error("renewedLease accepts a truncated Lease")
	}
}

// The envelope must equal the output of apimachinery's encoder.
func TestEnvelopeIsApimachinerys(t *testing.T) {
	raw := sampleLease(t)
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: leaseVersion, Kind: "Lease"}, Raw: raw}
	want, err := u.Marshal()
	must(t, err)
	if got := string(wrap(leaseVersion, "Lease", raw)); got != protobuf.Envelope+string(want) {
		t.Errorf("%q, want %q", got, want)
	}
}
