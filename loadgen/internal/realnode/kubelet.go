package realnode

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/yaml"
)

// kubeletPort is the port of a node's first kubelet. Each further kubelet uses the next port.
const kubeletPort = 10250

// kubeletConfig sets the fields that differ from a kubelet's defaults. It disables cgroups per QoS class, because they
// need cgroups that do not exist in a container. Because authorization is AlwaysAllow, the API server's certificate has
// the rights of an administrator.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
port: %[2]d
healthzPort: 0
tlsCertFile: %[3]s/serving.crt
tlsPrivateKeyFile: %[3]s/serving.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %[4]q}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
failCgroupV1: false
cgroupsPerQOS: false
enforceNodeAllocatable: []
oomScoreAdj: 0
failSwapOn: false
makeIPTablesUtilChains: false
containerRuntimeEndpoint: unix://` + runtimeSocket + `
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
evictionHard: {memory.available: 1Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
volumePluginDir: %[3]s/volume-plugins
podLogsDir: %[3]s/pod-logs
`

// pluginsOfKubelets is a directory that every kubelet creates, even if its root directory is elsewhere.
const pluginsOfKubelets = "/usr/libexec/kubernetes"

// Join starts a kubelet, which registers as a node of the control plane. stop ends the kubelet; its pods continue to
// run. All kubelets of a Node share its container runtime and addresses. Do not run pods on a Node with several
// kubelets, because each kubelet would kill the pods of other kubelets. settings are YAML fields of the
// KubeletConfiguration, such as `evictionHard: {memory.available: 1Gi}`.
func (n *Node) Join(ctx context.Context, name string, settings ...string) (stop func(), err error) {
	dir := filepath.Join(n.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	config, err := n.identities.For(ctx, name)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := n.WriteKubeconfig(config, kubeconfig); err != nil {
		return nil, err
	}
	serving, err := n.identities.Serve(ctx, name, []netip.Addr{n.link.node})
	if err != nil {
		return nil, err
	}
	if err := writePair(serving, filepath.Join(dir, "serving")); err != nil {
		return nil, err
	}
	clients, err := os.ReadFile(n.cluster.NodeCA.CertFile) // the control plane's directory may not be visible in the node
	if err != nil {
		return nil, err
	}
	ca, err := n.file(name+"/client-ca.crt", string(clients))
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, text := range append([]string{fmt.Sprintf(kubeletConfig, n.link.node, kubeletPort+n.kubelets, dir, ca)}, settings...) {
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			return nil, fmt.Errorf("the kubelet's setting %q: %w", text, err)
		}
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, err
	}
	file, err := n.file(name+"/kubelet.yaml", string(text))
	if err != nil {
		return nil, err
	}
	n.kubelets++
	return n.Run(n.kubelet, "--config", file, "--kubeconfig", kubeconfig, "--hostname-override", name, "--node-ip", n.link.node.String(),
		"--root-dir", dir, "--cert-dir", filepath.Join(dir, "pki"), "--v", "2")
}

// WriteKubeconfig writes a kubeconfig with which a program in the node reaches the API server as the user of c.
func (n *Node) WriteKubeconfig(c *rest.Config, path string) error {
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: n.server, CertificateAuthorityData: c.CAData, TLSServerName: c.ServerName}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	return clientcmd.WriteToFile(*file, path)
}

// writePair writes a certificate and its key to path.crt and path.key.
func writePair(pair *tls.Certificate, path string) error {
	key, err := keyutil.MarshalPrivateKeyToPEM(pair.PrivateKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".key", key, 0o600); err != nil {
		return err
	}
	return os.WriteFile(path+".crt", pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: pair.Certificate[0]}), 0o600)
}
