package pki

import (
	"strings"
	"sync"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// reservation is the names that no node may have: a node with one of them could
// pose as the server, or as the CA. Whoever signs looks here, however it came to
// that: a person, a token, a policy, a renewal.
type reservation struct {
	mu    sync.RWMutex
	names map[string]string // as altName writes it, in small letters, to why
}

// Why a name is reserved.
const (
	ofCA     = "stands for the CA itself"
	ofHost   = "stands for whatever machine it is used on"
	ofServer = "is, or was, a name of this server"
)

func (r *reservation) add(why string, names ...altName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names = map[string]string{}
	}
	for _, name := range names {
		r.names[name.plain()] = why
	}
}

// check is Denied if a node asks for one of the names.
func (r *reservation) check(name fleet.Certname, others []altName) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if why, taken := r.names[altName{dns: string(name)}.plain()]; taken {
		return fault.New(fault.Denied, "the certname %q %s: give the node another one (Puppet's setting certname, or --certname)", name, why)
	}
	for _, other := range others {
		if why, taken := r.names[other.plain()]; taken {
			return fault.New(fault.Denied, "the alternative name %s, which %s asks for, %s: leave it out", other, name, why)
		}
	}
	return nil
}

// plain is a name as two that mean the same are equal: host names know no case,
// and may end with a dot.
func (a altName) plain() string {
	if a.ip != nil {
		return "IP:" + a.ip.String()
	}
	return "DNS:" + strings.ToLower(strings.TrimSuffix(a.dns, "."))
}

// begin reserves what is known before the server has said its names: the machine's own, the CA's, and those that servers had.
func (r *reservation) begin(root *ca, servers []Certificate) error {
	r.add(ofHost, altName{dns: "localhost"})
	r.addCA(root)
	for _, c := range servers {
		if err := r.addServer(c); err != nil {
			return fault.Wrap(fault.Internal, err, "the stored server certificate %s cannot be read", fleet.Serial(c.Serial))
		}
	}
	return nil
}

// addServer reserves the names in a certificate of a server's.
func (r *reservation) addServer(c Certificate) error {
	certs, err := parseCertificates(c.PEM)
	if err != nil {
		return err
	}
	r.add(ofServer, altName{dns: certs[0].Subject.CommonName})
	r.add(ofServer, altNamesOf(certs[0])...)
	return nil
}

// addServers reserves the names of those of some certificates that are servers'. Where one cannot be read, the next start says so.
func (r *reservation) addServers(certs []Certificate) {
	for _, c := range certs {
		if c.Server {
			_ = r.addServer(c)
		}
	}
}

// addCA reserves the names of the CA: the one by which agents ask for its
// certificate, and those in its certificates.
func (r *reservation) addCA(root *ca) {
	r.add(ofCA, altName{dns: "ca"})
	for _, cert := range root.chain {
		r.add(ofCA, altName{dns: cert.Subject.CommonName})
	}
}
