// Package topology turns a configuration into the processes of a plane: their flags, addresses, identities and scrape
// targets, and the list of settings that differ from upstream's defaults. It uses no clock, no files and no network.
package topology

import (
	"fmt"
	"path/filepath"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/pki"
)

// Layout defines the paths inside a plane's directory. Dir is absolute.
type Layout struct {
	Dir string
	// Sockets is the directory of the Unix sockets. It is Dir, or a directory with a shorter path if the path of a
	// socket in Dir would be too long.
	Sockets string
}

// Program returns the path of the symbolic link that starts a component or tool. The link's name becomes the name of
// the process.
func (l Layout) Program(name string) string { return filepath.Join(l.Bin(), name) }

// ProgramOf returns the path of the symbolic link that starts a component of release r.
func (l Layout) ProgramOf(r control.Release, kind string) string {
	return filepath.Join(l.BinOf(r), kind)
}

// BinOf returns the directory with the links to the programs of release r.
func (l Layout) BinOf(r control.Release) string { return filepath.Join(l.Bin(), r.Minor) }

func (l Layout) Bin() string                 { return filepath.Join(l.Dir, "bin") }
func (l Layout) PKI() pki.Dir                { return pki.Dir(filepath.Join(l.Dir, "pki")) }
func (l Layout) Kubeconfigs() string         { return filepath.Join(l.Dir, "kubeconfigs") }
func (l Layout) Logs() string                { return filepath.Join(l.Dir, "logs") }
func (l Layout) Log(name string) string      { return filepath.Join(l.Logs(), name+".log") }
func (l Layout) Data(name string) string     { return filepath.Join(l.Dir, "data", name) }
func (l Layout) SchedulerConfig() string     { return filepath.Join(l.Dir, "scheduler.yaml") }
func (l Layout) Tracing() string             { return filepath.Join(l.Dir, "tracing.yaml") }
func (l Layout) AuditPolicy() string         { return filepath.Join(l.Dir, "audit-policy.yaml") }
func (l Layout) Authentication() string      { return filepath.Join(l.Dir, "authentication.yaml") }
func (l Layout) Authorization() string       { return filepath.Join(l.Dir, "authorization.yaml") }
func (l Layout) ABACPolicy() string          { return filepath.Join(l.Dir, "abac.jsonl") }
func (l Layout) Socket(name string) string   { return filepath.Join(l.Sockets, name+".sock") }
func (l Layout) Kubeconfig(id string) string { return filepath.Join(l.Kubeconfigs(), id+".kubeconfig") }

// CloudState returns the path of the file with the objects of the simulated cloud. CloudConfig returns the path of the
// kubeconfig with which cloud-controller-manager calls the cloud.
func (l Layout) CloudState() string  { return filepath.Join(l.Dir, "cloud.jsonl") }
func (l Layout) CloudConfig() string { return l.Kubeconfig(control.KindCloudAPI) }

// Encryption returns the path of the encryption configuration of an API server. The file contains the keys.
func (l Layout) Encryption(apiServer string) string {
	return filepath.Join(string(l.PKI()), "encryption-"+apiServer+".yaml")
}

// AuditLog returns the path of the audit log of an API server. Rotated files are in the same directory.
func (l Layout) AuditLog(apiServer string) string {
	return filepath.Join(l.Dir, control.AuditLogs, apiServer+".log")
}

// Config returns the path of the file with the configuration of the last start.
func (l Layout) Config() string { return filepath.Join(l.Dir, "config.json") }

// Host is the only address on which the plane listens.
const Host = "127.0.0.1"

// URL returns the HTTPS URL of a port on Host.
func URL(port int) string { return "https://" + hostPort(port) }

func hostPort(port int) string { return fmt.Sprintf("%s:%d", Host, port) }

// PodRange is the address range of the pods of simulated nodes. If nodes have routes, each node gets a part of the
// range.
const PodRange = "10.128.0.0/10"

// The address range of Services. Its first address belongs to the `kubernetes` Service.
const (
	ServiceRange = "10.96.0.0/12"
	ServiceIP    = "10.96.0.1"
)
