package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
)

// kubeconfigFlags are the flags that name a user's cluster and the identity to use there. They have the same names as
// in kubectl. There are no flags for namespaces and timeouts (the scenario and the run set them), for passwords (not
// supported), or for a proxy (the kubeconfig or the environment sets it).
type kubeconfigFlags struct {
	current bool
	names   []string // names of the flags that are valid only for a user's cluster
}

func (f *kubeconfigFlags) add(flags *pflag.FlagSet, into *cluster.Kubeconfig) {
	flags.StringVar(&into.Files, "kubeconfig", "", "kubeconfig `file` of your cluster, or several files as in $KUBECONFIG (default: a new control plane on this machine)")
	flags.BoolVar(&f.current, "current-cluster", false, "use the cluster that kubectl uses: from $KUBECONFIG or ~/.kube/config or, in a pod, the pod's own cluster")
	var own pflag.FlagSet
	clientcmd.BindOverrideFlags(&into.ConfigOverrides, &own, clientcmd.ConfigOverrideFlags{
		CurrentContext: clientcmd.FlagInfo{LongName: clientcmd.FlagContext, Description: "`context` in the kubeconfig (default: its current one)"},
		ContextOverrideFlags: clientcmd.ContextOverrideFlags{
			ClusterName:  clientcmd.FlagInfo{LongName: clientcmd.FlagClusterName, Description: "`cluster` in the kubeconfig (default: the context's)"},
			AuthInfoName: clientcmd.FlagInfo{LongName: clientcmd.FlagAuthInfoName, Description: "`user` in the kubeconfig (default: the context's)"},
		},
		ClusterOverrideFlags: clientcmd.ClusterOverrideFlags{
			APIServer:             clientcmd.FlagInfo{LongName: clientcmd.FlagAPIServer, Description: "`URL` of your cluster's API server"},
			CertificateAuthority:  clientcmd.FlagInfo{LongName: clientcmd.FlagCAFile, Description: "`file` with the CA certificate that signed the API server's certificate"},
			TLSServerName:         clientcmd.FlagInfo{LongName: clientcmd.FlagTLSServerName, Description: "`name` that the API server's certificate must have (default: its host)"},
			InsecureSkipTLSVerify: clientcmd.FlagInfo{LongName: clientcmd.FlagInsecure, Description: "do not verify the API server's certificate"},
		},
		AuthOverrideFlags: clientcmd.AuthOverrideFlags{
			ClientCertificate: clientcmd.FlagInfo{LongName: clientcmd.FlagCertFile, Description: "`file` of the client certificate"},
			ClientKey:         clientcmd.FlagInfo{LongName: clientcmd.FlagKeyFile, Description: "`file` of the client certificate's key"},
			Token:             clientcmd.FlagInfo{LongName: clientcmd.FlagBearerToken, Description: "bearer `token`"},
			Impersonate:       clientcmd.FlagInfo{LongName: clientcmd.FlagImpersonate, Description: "`user` to impersonate"},
			ImpersonateUID:    clientcmd.FlagInfo{LongName: clientcmd.FlagImpersonateUID, Description: "`UID` to impersonate"},
			ImpersonateGroups: clientcmd.FlagInfo{LongName: clientcmd.FlagImpersonateGroup, Description: "`group` to impersonate (repeatable)"},
		},
	})
	own.VisitAll(func(flag *pflag.Flag) { f.names = append(f.names, flag.Name) })
	commandline.AsInKubectl(&own)
	flags.AddFlagSet(&own)
}

// into copies the flags to k. It returns an error if a flag would have no effect.
func (f *kubeconfigFlags) into(cmd *cobra.Command, k *cluster.Kubeconfig) error {
	if f.current {
		if k.Files != "" {
			return exitcode.Usagef("--current-cluster and --kubeconfig cannot be used together (leave out one of them)")
		}
		var err error
		if k.Files, err = cluster.CurrentKubeconfig(); err != nil {
			return exitcode.Usagef("--current-cluster: %w", err)
		}
	}
	if k.Files != "" {
		return nil
	}
	for _, name := range append([]string{"targets"}, f.names...) {
		flag := cmd.Flags().Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		if name != clientcmd.FlagBearerToken {
			name += " " + flag.Value.String()
		}
		return exitcode.Usagef("--%s: requires --kubeconfig FILE", name)
	}
	return nil
}
