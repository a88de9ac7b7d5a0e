package adminclient

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestLeaseTaken(t *testing.T) {
	begun := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := func(s int) *metav1.MicroTime {
		return &metav1.MicroTime{Time: begun.Add(time.Duration(s) * time.Second)}
	}
	holder, nobody, strategy := "vm_1", "", coordinationv1.OldestEmulationVersion
	by := func(manager, fields string) []metav1.ManagedFieldsEntry {
		written := &metav1.FieldsV1{}
		if err := written.UnmarshalJSON([]byte(fields)); err != nil {
			t.Fatal(err)
		}
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: written}}
	}
	const renewed = `{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}`
	for name, c := range map[string]struct {
		spec    coordinationv1.LeaseSpec
		managed []metav1.ManagedFieldsEntry
		want    bool
	}{
		"no holder yet":                      {coordinationv1.LeaseSpec{}, nil, false},
		"given up":                           {coordinationv1.LeaseSpec{HolderIdentity: &nobody, AcquireTime: at(1), RenewTime: at(1)}, nil, false},
		"taken":                              {coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: at(1), RenewTime: at(1)}, nil, true},
		"held since the plane's last life":   {coordinationv1.LeaseSpec{HolderIdentity: &holder, AcquireTime: at(-60), RenewTime: at(1)}, nil, false},
		"chosen, and the holder knows not":   {coordinationv1.LeaseSpec{HolderIdentity: &holder, Strategy: &strategy, RenewTime: at(1)}, by(control.KindAPIServer, renewed), false},
		"chosen and renewed by the holder":   {coordinationv1.LeaseSpec{HolderIdentity: &holder, Strategy: &strategy, RenewTime: at(3)}, by(control.KindScheduler, renewed), true},
		"renewed in the plane's last life":   {coordinationv1.LeaseSpec{HolderIdentity: &holder, Strategy: &strategy, RenewTime: at(-2)}, by(control.KindScheduler, renewed), false},
		"given to another, who knows not":    {coordinationv1.LeaseSpec{HolderIdentity: &holder, Strategy: &strategy, RenewTime: at(9)}, by(control.KindScheduler, `{"f:spec":{"f:leaseTransitions":{}}}`), false},
		"no strategy, and no time of taking": {coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: at(1)}, by(control.KindScheduler, renewed), false},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.managed}, Spec: c.spec}
		if got := leaseTaken(lease, control.KindScheduler, begun); got != c.want {
			t.Errorf("%s: leaseTaken = %v, want %v", name, got, c.want)
		}
	}
}
