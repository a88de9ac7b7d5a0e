package component

import (
	"flag"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	cloudcontrollers "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/names"
	cloudmanagers "k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	managers "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	metricsserver "sigs.k8s.io/metrics-server/cmd/metrics-server/app/options"

	"github.com/stormglass/stormglass/controlplane/control"
)

// limit returns the lower bound that a component's own validation requires of a flag: ">=0", ">0", or "" if it accepts
// -1.
func limit(t *testing.T, kind string, f *pflag.Flag) string {
	t.Helper()
	unit := ""
	switch f.Value.Type() {
	case "int", "int32", "int64", "float32", "float64":
	case "duration":
		unit = "s"
	default:
		return ""
	}
	refused := func(value string) bool {
		before := complaints(t, kind, "", "")
		return slices.ContainsFunc(complaints(t, kind, f.Name, value), func(c string) bool { return !slices.Contains(before, c) })
	}
	switch {
	case !refused("-1" + unit):
		return ""
	case refused("0" + unit):
		return ">0"
	}
	return ">=0"
}

// complaints validates a component's options with one of them set, and returns the errors.
func complaints(t *testing.T, kind, name, value string) []string {
	t.Helper()
	var options any
	var sets cliflag.NamedFlagSets
	set := pflag.NewFlagSet(kind, pflag.ContinueOnError)
	switch kind {
	case control.KindEtcd:
		c := embed.NewConfig()
		c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		all := flag.NewFlagSet(kind, flag.ContinueOnError)
		c.AddFlags(all)
		set.AddGoFlagSet(all)
		options = c
	case control.KindAPIServer:
		o := apiserver.NewServerRunOptions()
		sets, options = o.Flags(), o
	case control.KindControllerManager:
		o, err := managers.NewKubeControllerManagerOptions()
		if err != nil {
			t.Fatal(err)
		}
		sets, options = o.Flags(controllers.KnownControllers(), controllers.ControllersDisabledByDefault(), controllers.ControllerAliases()), o
	case control.KindCloudControllerManager:
		o, err := cloudmanagers.NewCloudControllerManagerOptions()
		if err != nil {
			t.Fatal(err)
		}
		sets, options = o.Flags(cloudcontrollers.ControllerNames(cloudcontrollers.DefaultInitFuncConstructors), nil, names.CCMControllerAliases(), nil, nil), o
	case control.KindScheduler:
		o := scheduler.NewOptions()
		sets, options = *o.Flags, o
	case control.KindMetricsServer:
		o := metricsserver.NewOptions()
		sets, options = o.Flags(), o
	}
	for _, s := range sets.FlagSets {
		set.AddFlagSet(s)
	}
	if name != "" {
		if set.Lookup(name) == nil {
			return nil // an error of the program, not of its options
		}
		if err := set.Set(name, value); err != nil {
			return []string{err.Error()}
		}
	}
	return validated(reflect.ValueOf(options))
}

// validated calls the method Validate of options, or of the structs in them, and returns the errors.
func validated(v reflect.Value) []string {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	if v.CanAddr() {
		v = v.Addr()
	}
	if all, ok := ownValidation(v); ok {
		return all
	}
	var all []string
	if v = reflect.Indirect(v); v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		if f := v.Field(i); v.Type().Field(i).IsExported() && (f.Kind() == reflect.Struct || f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct) {
			all = append(all, validated(f)...)
		}
	}
	return all
}

// ownValidation calls v's method Validate, if it has one. ok is false if it has none, or if Validate panics because it
// needs completed options. The caller then validates v's fields.
func ownValidation(v reflect.Value) (all []string, ok bool) {
	m := v.MethodByName("Validate")
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 {
		return nil, false
	}
	defer func() {
		if recover() != nil {
			all, ok = nil, false
		}
	}()
	switch errs := m.Call(nil)[0].Interface().(type) {
	case []error:
		for _, err := range errs {
			all = append(all, fmt.Sprint(err))
		}
	case error:
		all = append(all, errs.Error())
	}
	return all, true
}
