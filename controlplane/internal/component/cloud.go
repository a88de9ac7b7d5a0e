package component

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	cloudprovider "k8s.io/cloud-provider"
	manager "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/names"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"

	"github.com/stormglass/stormglass/controlplane/internal/cloud"
)

// newCloudControllerManager returns the command of k8s.io/cloud-provider with its four controllers. The kubeconfig in
// --cloud-config contains the URL of the cloud's API.
func newCloudControllerManager() *cobra.Command {
	o, err := options.NewCloudControllerManagerOptions()
	runtime.Must(err) // depends only on upstream's defaults
	initialize := func(c *config.CompletedConfig) cloudprovider.Interface {
		provider, err := cloud.New(c.ComponentConfig.KubeCloudShared.CloudProvider.CloudConfigFile)
		if err != nil {
			klog.Fatalf("cloud: %v", err)
		}
		return provider
	}
	return manager.NewCloudControllerManagerCommand(o, initialize, manager.DefaultInitFuncConstructors, names.CCMControllerAliases(), cliflag.NamedFlagSets{}, wait.NeverStop)
}
