package component

import (
	"flag"
	"fmt"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	metricsserver "sigs.k8s.io/metrics-server/cmd/metrics-server/app"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Check validates the user's flags with the component's own flag set. It validates a scheduler configuration as the
// scheduler does.
func Check(kind string, ask control.Check) (control.Checked, error) {
	set, err := flagsOf(kind)
	if err != nil {
		return control.Checked{}, err
	}
	checked := control.Checked{Defaults: map[string]string{}, Wrong: map[string]string{}}
	set.VisitAll(func(f *pflag.Flag) { checked.Known = append(checked.Known, f.Name) })
	for name, value := range ask.Flags {
		f := set.Lookup(name)
		if f == nil {
			checked.Unknown = append(checked.Unknown, name)
			continue
		}
		checked.Defaults[name] = f.DefValue
		if err := set.Set(name, value); err != nil {
			checked.Wrong[name] = err.Error()
		}
	}
	if ask.SchedulerConfig != "" {
		if err := checkSchedulerConfig([]byte(ask.SchedulerConfig)); err != nil {
			checked.ConfigError = err.Error()
		}
	}
	return checked, nil
}

func flagsOf(kind string) (*pflag.FlagSet, error) {
	switch kind {
	case control.KindEtcd:
		all := flag.NewFlagSet(kind, flag.ContinueOnError)
		embed.NewConfig().AddFlags(all)
		set := pflag.NewFlagSet(kind, pflag.ContinueOnError)
		set.AddGoFlagSet(all)
		return set, nil
	case control.KindAPIServer:
		return apiserver.NewAPIServerCommand().Flags(), nil
	case control.KindScheduler:
		return scheduler.NewSchedulerCommand().Flags(), nil
	case control.KindControllerManager:
		return controllers.NewControllerManagerCommand().Flags(), nil
	case control.KindMetricsServer:
		return metricsserver.NewMetricsServerCommand(nil).Flags(), nil
	case control.KindCloudControllerManager:
		return newCloudControllerManager().Flags(), nil
	}
	return nil, fmt.Errorf("no component %q", kind)
}

// checkSchedulerConfig decodes a scheduler configuration strictly and validates it, as the scheduler does when it
// starts.
func checkSchedulerConfig(data []byte) error {
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return err
	}
	cfg, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return fmt.Errorf("%T is not a KubeSchedulerConfiguration", object)
	}
	if errs := validation.ValidateKubeSchedulerConfiguration(cfg); errs != nil {
		return errs
	}
	return nil
}
