package management

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a file that holds a key, for its owner alone.
func writeKubeconfig(path, server string, caPEM []byte, user pair) error {
	const name = "etcdmanager"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: user.cert, ClientKeyData: user.key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	raw, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write the kubeconfig %s: %w", path, err)
	}
	return writePrivate(path, raw)
}
