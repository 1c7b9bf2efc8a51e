package agent

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// neighbour is the Puppet of a node with which the agent shares one certificate: where Puppet keeps it, and what Puppet's settings say.
type neighbour struct {
	puppet string // its executable
	is     map[string]string
}

// neighbourSettings are those of Puppet's settings that sharing a certificate is about.
func neighbourSettings() []string {
	return []string{
		"certname", "certdir", "privatekeydir", "requestdir", "ssldir", "localcacert", "hostcrl", "config", "csr_attributes",
		"server", "serverport", "server_list", "ca_server", "user", "group",
	}
}

// askNeighbour asks Puppet for its settings, once for all of them.
func askNeighbour(ctx context.Context, puppet string) (neighbour, error) {
	printed, err := puppetSays(ctx, puppet, append([]string{"config", "print", "--section", "agent"}, neighbourSettings()...)...)
	if err != nil {
		return neighbour{}, err
	}
	n := neighbour{puppet, puppetenv.ParseSettings(printed)}
	for _, name := range []string{"certname", "certdir", "privatekeydir", "localcacert", "hostcrl", "ssldir"} {
		if n.is[name] == "" {
			return n, fault.New(fault.Unavailable, "%s does not say what its setting %s is; mend Puppet, or join without it: --no-puppet", puppet, name)
		}
	}
	return n, nil
}

// places are where Puppet keeps the certificate of that name.
func (n neighbour) places(name fleet.Certname) places {
	file := string(name) + ".pem"
	return places{
		ca: n.is["localcacert"], certificate: filepath.Join(n.is["certdir"], file), key: filepath.Join(n.is["privatekeydir"], file), crl: n.is["hostcrl"],
		mode: 0o640, owner: serviceOwner(n.is["user"], n.is["group"]),
	}
}

// makeDirs makes the directories of places as Puppet does, and that of its configuration file, which `puppet config set` does not make. The others
// that it needs it makes itself.
func (n neighbour) makeDirs(o *owner) error {
	var err error
	if config := n.is["config"]; config != "" {
		err = makeDirAs(filepath.Dir(config), 0o755, nil)
	}
	return errors.Join(err, makeDirAs(n.is["ssldir"], 0o771, o), makeDirAs(n.is["certdir"], 0o755, o), makeDirAs(n.is["privatekeydir"], 0o750, o))
}

// fits refuses a neighbour whose settings or certificates are of another fleet, before anything is changed.
func (n neighbour) fits(name fleet.Certname, server *url.URL) error {
	if list := n.is["server_list"]; list != "" && list != "[]" && !strings.Contains(list, server.Hostname()) {
		return fault.New(fault.Conflict,
			"Puppet on this node asks other servers: %s has server_list = %s, which goes before server. Put %s there or remove the line, and join again; "+
				"or leave Puppet as it is: --no-puppet", n.is["config"], list, server.Hostname())
	}
	if ca := n.is["ca_server"]; ca != "" && ca != n.is["server"] && ca != server.Hostname() {
		return fault.New(fault.Conflict, "Puppet on this node has its certificates from another server: %s has ca_server = %s. Remove that line and join again; "+
			"or leave Puppet as it is: --no-puppet", n.is["config"], ca)
	}
	is := n.is["certname"]
	if is == string(name) {
		return nil
	}
	other := filepath.Join(n.is["certdir"], is+".pem")
	leaf, err := readCertificate(other)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fault.New(fault.Conflict, "Puppet on this node has a certificate as %s already, not as %s (%s, by %s; certname is in %s). Join under that name: --certname %s; or give that certificate up: "+
		"`puppet ssl clean`; or leave Puppet as it is: --no-puppet", is, name, other, leaf.Issuer.CommonName, n.is["config"], is)
}

// configure makes Puppet's settings say this name and server, by Puppet's own `config set`, which keeps what else is in the file. Changed is what it set.
func (n neighbour) configure(ctx context.Context, name fleet.Certname, server *url.URL) (changed []string, err error) {
	// The name is written even where it is the default: else another host name would be another node.
	if said, err := n.says("certname"); err != nil {
		return nil, err
	} else if !said && n.is["certname"] == string(name) {
		if _, err := puppetSays(ctx, n.puppet, "config", "set", "certname", string(name), "--section", "main"); err != nil {
			return nil, err
		}
		changed = append(changed, "certname = "+string(name))
	}
	want := [][2]string{{"certname", string(name)}}
	if list := n.is["server_list"]; list == "" || list == "[]" { // what fits saw is good as it is
		want = append(want, [2]string{"server", server.Hostname()}, [2]string{"serverport", server.Port()})
	}
	for _, section := range []string{"main", "agent"} { // the agent's own section wins
		left := slices.DeleteFunc(slices.Clone(want), func(w [2]string) bool { return n.is[w[0]] == w[1] })
		if len(left) == 0 {
			return changed, nil
		}
		for _, w := range left {
			if _, err := puppetSays(ctx, n.puppet, "config", "set", w[0], w[1], "--section", section); err != nil {
				return changed, err
			}
			if text := w[0] + " = " + w[1]; !slices.Contains(changed, text) {
				changed = append(changed, text)
			}
		}
		if n, err = askNeighbour(ctx, n.puppet); err != nil {
			return changed, err
		}
	}
	for _, w := range want {
		if n.is[w[0]] != w[1] {
			return changed, fault.New(fault.Conflict, "Puppet's %s is %s though %s says %s; mend that, and join again", w[0], n.is[w[0]], n.is["config"], w[1])
		}
	}
	return changed, nil
}

// says tells whether Puppet's configuration file has a setting.
func (n neighbour) says(setting string) (bool, error) {
	text, err := os.ReadFile(n.is["config"])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fault.New(fault.Invalid, "%s cannot be read: %v; run it as root", n.is["config"], cause(err))
	}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == setting {
			return true, nil
		}
	}
	return false, nil
}

// readCertificate reads the first certificate of a file.
func readCertificate(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s cannot be read: %v; run it as root", path, cause(err))
	}
	all, err := parseCertificates(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s: %s", path, fault.Detail(err))
	}
	return all[0], nil
}

// readKey reads a private key; nil if there is none.
func readKey(path string) (crypto.Signer, []byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, unwritable(path, err)
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, nil, fault.New(fault.Invalid, "%s: %s", path, fault.Detail(err))
	}
	return key, text, nil
}
