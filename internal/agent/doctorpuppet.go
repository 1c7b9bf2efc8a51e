package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// puppet looks at the Puppet of this node, and at how it goes together with the agent.
func (d Doctor) puppet(ctx context.Context, id *Identity) []Finding {
	path, err := findPuppet(d.Config.Puppet)
	if err != nil {
		return []Finding{{
			Check: "puppet", State: Warning, Found: fault.Detail(err),
			Mend: "without it there are no Puppet runs; commands, scripts and tasks work. When it is installed, run `tutti agent join` again: it gets this node's certificate",
		}}
	}
	version, err := puppetSays(ctx, path, "--version")
	if err != nil {
		return []Finding{{
			Check: "puppet", State: Broken, Found: fault.Detail(err),
			Mend: "mend the installation of puppet, or name another one with puppet in agent.yaml",
		}}
	}
	all := []Finding{good("puppet", "%s is %s", path, version)}
	if id == nil {
		return all
	}
	n, err := askNeighbour(ctx, path)
	if err != nil {
		return append(all, broken("puppet settings", err))
	}
	shared := n.places(id.Name()).key == d.Config.KeyFile
	all = append(all, d.neighbourCertificate(id, n, shared))
	return append(all, d.neighbourServer(ctx, n, shared))
}

// severity is how bad it is that Puppet cannot work: an agent that has nothing to do with this Puppet goes on without it.
func (d Doctor) severity(shared bool) Verdict {
	if shared || d.Config.Runs == RunsScheduled {
		return Broken
	}
	return Warning
}

// again is the command that shares the agent's certificate with Puppet.
func (d Doctor) again(n neighbour) string { return d.joinWith(n.puppet) }

// joinWith is again with any Puppet; the agent at the usual place finds it.
func (d Doctor) joinWith(puppet string) string {
	command := "tutti agent join"
	if servers := d.Config.primaries(); len(servers) > 0 {
		command += " " + servers[0]
	}
	if dir := d.Config.dirFlag(); dir != "" {
		command += dir + " --puppet " + puppet
	}
	return command
}

// neighbourCertificate holds Puppet's name, key and CA against the agent's.
func (d Doctor) neighbourCertificate(id *Identity, n neighbour, shared bool) Finding {
	const check = "puppet certificate"
	name := string(id.Name())
	if is := n.is["certname"]; is != name {
		mend := fmt.Sprintf("`puppet config set certname %s`; or give the agent Puppet's name: remove %s and join with --certname %s", name,
			d.Config.CertificateFile, is)
		if !shared && d.Config.dirFlag() != "" {
			mend += "; or give the agent a Puppet of its own: `" + d.joinWith("PATH") + "`"
		}
		return Finding{
			Check: check, State: d.severity(shared),
			Found: fmt.Sprintf("Puppet is configured as %s, and this agent is %s: the server sees two nodes; Puppet's settings are in %s", is, name, n.is["config"]),
			Mend:  mend,
		}
	}
	if shared {
		return good(check, "is this agent's")
	}
	at := n.places(id.Name())
	key, _, err := readKey(at.key)
	switch {
	case err != nil:
		return broken(check, err)
	case key == nil:
		return Finding{
			Check: check, State: Warning, Found: fmt.Sprintf("Puppet has none for %s: its first run makes a key of its own, which the server refuses", name),
			Mend: "let both have one: " + d.again(n),
		}
	case !sameKey(key.Public(), id.Certificate().PublicKey):
		return Finding{
			Check: check, State: Broken,
			Found: fmt.Sprintf("there are two keys for %s: the agent's, %s, and Puppet's, %s; the server accepts one", name, d.Config.KeyFile, at.key),
			Mend: "give Puppet's up and share the agent's: puppet ssl clean; then " + d.again(n) +
				". Or share Puppet's, if the server has signed that one: tutti agent join --use-puppet-certificates, in an empty directory",
		}
	}
	ca, err := readCertificate(at.ca)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return broken(check, err)
	case !slices.ContainsFunc(id.authorities(), ca.Equal):
		return Finding{
			Check: check, State: Broken, Found: fmt.Sprintf("Puppet trusts another CA: %s holds %q (%s)", at.ca, ca.Subject.CommonName, fingerprint(ca)),
			Mend: "puppet ssl clean --localca; then " + d.again(n),
		}
	}
	return good(check, "has this agent's key")
}

// neighbourServer looks at the server that Puppet asks.
func (d Doctor) neighbourServer(ctx context.Context, n neighbour, shared bool) Finding {
	const check = "puppet server"
	address := net.JoinHostPort(n.is["server"], n.is["serverport"])
	if list := n.is["server_list"]; list != "" && list != "[]" {
		return d.listedServer(check, list, n)
	}
	dialing, cancel := context.WithTimeout(ctx, d.Config.ConnectTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(dialing, "tcp", address)
	if err != nil {
		return Finding{
			Check: check, State: d.severity(shared), Found: fmt.Sprintf("Puppet asks %s, which cannot be reached: %v", address, err),
			Mend: d.setServer(n) + "; or " + mendConnection(err), Unreachable: d.asksHere(ctx, n),
		}
	}
	_ = conn.Close()
	if !d.asksHere(ctx, n) {
		return Finding{
			Check: check, State: Warning,
			Found: fmt.Sprintf("Puppet asks %s, and this agent %s; Puppet's settings are in %s", address, strings.Join(d.Config.primaries(), ", "), n.is["config"]),
			Mend:  d.setServer(n) + ", unless both belong to one fleet",
		}
	}
	return good(check, "%s", address)
}

func (d Doctor) listedServer(check, list string, n neighbour) Finding {
	for _, server := range d.serverURLs() {
		if strings.Contains(list, server.Hostname()) {
			return good(check, "server_list = %s", list)
		}
	}
	return Finding{
		Check: check, State: Warning,
		Found: fmt.Sprintf("Puppet asks its server_list = %s, and this agent %s", list, strings.Join(d.Config.primaries(), ", ")),
		Mend:  "remove server_list from " + n.is["config"] + " and " + d.setServer(n),
	}
}

func (d Doctor) serverURLs() []*url.URL {
	var all []*url.URL
	for _, text := range d.Config.primaries() {
		if u, err := url.Parse(text); err == nil {
			all = append(all, u)
		}
	}
	return all
}

// asksHere says whether Puppet asks one of the agent's servers, by whatever name.
func (d Doctor) asksHere(ctx context.Context, n neighbour) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	theirs, _ := net.DefaultResolver.LookupHost(ctx, n.is["server"])
	for _, server := range d.serverURLs() {
		if server.Port() != n.is["serverport"] {
			continue
		}
		if server.Hostname() == n.is["server"] {
			return true
		}
		ours, _ := net.DefaultResolver.LookupHost(ctx, server.Hostname())
		if slices.ContainsFunc(ours, func(a string) bool { return slices.Contains(theirs, a) }) {
			return true
		}
	}
	return false
}

// setServer is how Puppet gets the agent's server.
func (d Doctor) setServer(n neighbour) string {
	servers := d.serverURLs()
	if len(servers) == 0 {
		return "set server in " + n.is["config"]
	}
	text := "puppet config set server " + servers[0].Hostname()
	if port := servers[0].Port(); port != n.is["serverport"] {
		text += "; puppet config set serverport " + port
	}
	return text
}
