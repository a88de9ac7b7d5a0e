package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/history/check"
)

// valueKey is the key in the data of a ConfigMap under which the register's value is stored.
const valueKey = "value"

// versionOf returns the resourceVersion of an object or list as a number. Kubernetes guarantees that it is a number
// (KEP-5504).
func versionOf(o interface{ GetResourceVersion() string }) (uint64, error) {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil || v == 0 {
		return 0, fmt.Errorf("resourceVersion %q is not a number", o.GetResourceVersion())
	}
	return v, nil
}

// valueOf returns the value of a register. It returns Foreign if the stored value is not a number.
func valueOf(o *corev1.ConfigMap) uint64 {
	v, err := strconv.ParseUint(o.Data[valueKey], 10, 64)
	if err != nil {
		return check.Foreign
	}
	return v
}

// registers contains the names and paths of a load's ConfigMaps.
type registers struct {
	namespace  string
	labels     map[string]string
	names      []string
	numbers    map[string]int
	collection string // path of the collection of ConfigMaps
	selector   string // query parameter that selects the load's objects: "&labelSelector=..."
}

func newRegisters(t load.Target, c Config) (*registers, error) {
	if t.Namespace == "" {
		return nil, errors.New("no namespace for the load's objects")
	}
	r := &registers{namespace: t.Namespace, labels: map[string]string{}, numbers: map[string]int{}}
	maps.Copy(r.labels, t.Labels)
	r.labels[load.LoadLabel] = c.Name
	r.collection = "/api/v1/namespaces/" + url.PathEscape(t.Namespace) + "/configmaps"
	r.selector = "&labelSelector=" + url.QueryEscape(load.LoadLabel+"="+c.Name)
	for i := range c.Registers {
		name := fmt.Sprintf("%s-%d", c.Name, i)
		r.names, r.numbers[name] = append(r.names, name), i
	}
	return r, nil
}

func (r *registers) path(i int) string { return r.collection + "/" + url.PathEscape(r.names[i]) }

// body returns the manifest of register i with the given value, for an update that replaces the given version. Version
// 0 means any version.
func (r *registers) body(i int, value, version uint64) []byte {
	o := corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: r.names[i], Namespace: r.namespace, Labels: r.labels},
		Data:       map[string]string{valueKey: strconv.FormatUint(value, 10)},
	}
	if version > 0 {
		o.ResourceVersion = strconv.FormatUint(version, 10)
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err) // impossible: it has only strings
	}
	return b
}

// number returns the index of the register with the given name, or -1 if none exists.
func (r *registers) number(name string) int {
	if i, ok := r.numbers[name]; ok {
		return i
	}
	return -1
}

// readList returns the version of a list and the states of all registers. A register that is not in the list has
// version 0.
func (r *registers) readList(body []byte) (version uint64, states []check.Operation, err error) {
	var l corev1.ConfigMapList
	if err := json.Unmarshal(body, &l); err != nil {
		return 0, nil, fmt.Errorf("unreadable list: %w", err)
	}
	if version, err = versionOf(&l); err != nil {
		return 0, nil, fmt.Errorf("a list: %w", err)
	}
	states = make([]check.Operation, len(r.names))
	for i := range states {
		states[i] = check.Operation{Register: i, Kind: check.Read}
	}
	for _, o := range l.Items {
		if i := r.number(o.Name); i >= 0 {
			if states[i].Version, err = versionOf(&o); err != nil {
				return 0, nil, fmt.Errorf("%s in a list: %w", o.Name, err)
			}
			states[i].Value = valueOf(&o)
		}
	}
	return version, states, nil
}
