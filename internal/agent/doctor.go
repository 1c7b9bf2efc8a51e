package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/wire"
)

// Finding is what a check found; the server uses the word, too.
type Finding = checkup.Finding

// Verdict is how bad a finding is.
type Verdict = checkup.Verdict

// The verdicts.
const (
	Good    = checkup.Good
	Warning = checkup.Warning
	Broken  = checkup.Broken
)

// Doctor looks for what keeps an agent from its work. It changes nothing.
type Doctor struct {
	Config  Config
	Version string

	name string // the certificate's; empty: there is none
}

// soon is when the end of a certificate is worth a warning.
const soon = 30 * 24 * time.Hour

// Examine makes all checks that make sense.
func (d Doctor) Examine(ctx context.Context) []Finding {
	id, err := LoadIdentity(d.Config)
	if err != nil {
		return append([]Finding{broken("certificate", err)}, d.house(ctx, nil)...)
	}
	d.name = string(id.Name())
	all := append([]Finding{d.certificate(id), d.key(), d.list(id)}, d.servers(ctx, id)...)
	return append(all, d.house(ctx, id)...)
}

// house is what is there without a certificate; id is nil if there is none.
func (d Doctor) house(ctx context.Context, id *Identity) []Finding {
	all := append([]Finding{d.data(), d.space(), d.policy()}, d.puppet(ctx, id)...)
	all = append(append(all, d.actionPolicies()...), d.agent(ctx))
	return append(all, d.schedule(ctx)...)
}

func good(check, format string, args ...any) Finding { return checkup.Goodf(check, format, args...) }

// broken makes a finding of an error, whose text says what to do after a semicolon or not at all.
func broken(check string, err error) Finding {
	text := fault.Detail(err)
	if text == "" {
		text = err.Error()
	}
	return Finding{Check: check, State: Broken, Found: text, Mend: "see left"}
}

func (d Doctor) certificate(id *Identity) Finding {
	leaf := id.Certificate()
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: poolOf(id.authorities()), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	left := time.Until(leaf.NotAfter)
	switch {
	case left <= 0:
		return Finding{
			Check: "certificate", State: Broken, Found: fmt.Sprintf("%s has expired: it ended on %s", id.Name(), leaf.NotAfter.Format(time.DateOnly)),
			Mend: d.anew(id),
		}
	case time.Now().Before(leaf.NotBefore):
		return Finding{
			Check: "certificate", State: Broken, Found: fmt.Sprintf("%s is not good before %s", id.Name(), leaf.NotBefore.Format(time.RFC3339)),
			Mend: "set this machine's clock by NTP",
		}
	case err != nil:
		return Finding{
			Check: "certificate", State: Broken, Found: fmt.Sprintf("%s does not come from the CA in %s: %v", id.Name(), d.Config.CAFile, err),
			Mend: "put the certificates of one fleet there, or remove all of them and join again",
		}
	case left < soon:
		return Finding{
			Check: "certificate", State: Warning, Found: fmt.Sprintf("%s ends on %s", id.Name(), leaf.NotAfter.Format(time.DateOnly)),
			Mend: "a running agent renews it, unless renew is 0 or the certificate is Puppet's; see its log",
		}
	}
	root := chains[0][len(chains[0])-1]
	return good("certificate", "%s, good until %s, by %s", id.Name(), leaf.NotAfter.Format(time.DateOnly), root.Subject.CommonName)
}

// anew is how a node gets another certificate.
func (d Doctor) anew(id *Identity) string {
	here := "remove " + d.Config.CertificateFile + " here"
	if d.Config.RenewShared {
		here = "`puppet ssl clean` here"
	}
	return fmt.Sprintf("if this node may come back, run `tutti ca clean %s` on the server, %s, and join again", id.Name(), here)
}

func (d Doctor) key() Finding {
	info, err := os.Stat(d.Config.KeyFile)
	if err != nil {
		return broken("key", err)
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o007 != 0 {
		return Finding{
			Check: "key", State: Broken, Found: fmt.Sprintf("%s has mode %04o: everybody can read it", d.Config.KeyFile, mode), Mend: "chmod 600 " + d.Config.KeyFile,
		}
	}
	return good("key", "belongs to the certificate")
}

func (d Doctor) list(id *Identity) Finding {
	text, err := os.ReadFile(d.Config.CRLFile)
	if err != nil {
		return Finding{
			Check: "revocation list", State: Warning, Found: fmt.Sprintf("%s cannot be read: %v", d.Config.CRLFile, cause(err)),
			Mend: "join again: it is fetched then",
		}
	}
	lists, err := parseLists(text)
	if err != nil || len(lists) == 0 {
		return Finding{
			Check: "revocation list", State: Broken, Found: d.Config.CRLFile + " holds no revocation list", Mend: "remove it and join again: it is fetched then",
		}
	}
	if revoked := revokedIn(append([]*x509.Certificate{id.Certificate()}, id.authorities()...), lists); revoked != nil {
		return Finding{
			Check: "revocation list", State: Broken, Found: revoked.Error(),
			Mend: d.anew(id),
		}
	}
	if next := lists[0].NextUpdate; !next.IsZero() && time.Now().After(next) {
		return Finding{
			Check: "revocation list", State: Warning, Found: "it should have been replaced by " + next.Format(time.DateOnly),
			Mend: "a running agent that is connected fetches the new one, unless it is Puppet's",
		}
	}
	return good("revocation list", "of %s", lists[0].ThisUpdate.Format(time.DateOnly))
}

// servers tries each server as the agent does, and looks at its clock.
func (d Doctor) servers(ctx context.Context, id *Identity) []Finding {
	var all []Finding
	for _, address := range d.Config.brokers() {
		all = append(all, d.broker(ctx, id, address))
	}
	for _, address := range d.Config.primaries() {
		if f, ok := d.clock(ctx, address); ok {
			all = append(all, f)
		}
	}
	return all
}

func (d Doctor) broker(ctx context.Context, id *Identity, address string) Finding {
	check := "server " + address
	link, err := connection.New(connection.Config{
		URLs: []string{address}, Version: wire.Version(d.Config.PCPVersion), URI: wire.NewURI(string(id.Name()), wire.ExaminerType),
		TLS: id.TLS, UserAgent: userAgent(d.Version), ConnectTimeout: d.Config.ConnectTimeout, Log: slog.New(slog.DiscardHandler), Explain: id.explain,
	})
	if err != nil {
		return broken(check, err)
	}
	begun := time.Now()
	if err := link.Try(ctx); err != nil {
		if no, refused := errors.AsType[refusal](err); refused {
			if no.anew {
				no.mend = d.anew(id)
			}
			return Finding{Check: check, State: Broken, Found: no.why, Mend: no.mend}
		}
		if found, foreign := d.foreignServer(ctx, id, check, address, err); foreign {
			return found
		}
		return Finding{Check: check, State: Broken, Found: err.Error(), Mend: mendConnection(err), Unreachable: true}
	}
	return good(check, "lets this node in, in %s", time.Since(begun).Round(time.Millisecond))
}

// mendConnection is advice for what goes wrong with connections.
func mendConnection(err error) string {
	if name, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("name it in agent.yaml as its certificate does (%v), or add this name to dns_alt_names on the server", name.Certificate.DNSNames)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "it is not the server that this node joined, or the clock is wrong"
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return "no machine is called " + name.Name + ": mend the name, DNS or /etc/hosts"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "nothing listens on that port: is the server running, and is that its port?"
	}
	if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "nobody answers: let the port through the firewalls in between (TCP, from here to the server); is the address right?"
	}
	return "is the server running, is the address right, and does a firewall let the port through?"
}

// foreignServer says that a server has a certificate of another CA than the node knows, and of which.
func (d Doctor) foreignServer(ctx context.Context, id *Identity, check, address string, err error) (Finding, bool) {
	unknown, ok := errors.AsType[x509.UnknownAuthorityError](err)
	if !ok {
		return Finding{}, false
	}
	u, parsed := url.Parse(address)
	if parsed != nil {
		return Finding{}, false
	}
	theirs := unknown.Cert.Issuer.CommonName
	if text, err := unproven(&url.URL{Scheme: "https", Host: u.Host}).bundle(ctx); err == nil {
		if bundle, err := parseCertificates(text); err == nil {
			theirs = bundle[0].Subject.CommonName + ", " + fingerprint(bundle[0])
		}
	}
	ours := id.authorities()[0]
	return Finding{
		Check: check, State: Broken, Found: fmt.Sprintf("it is of another CA (%s) than this node (%s, %s)", theirs, ours.Subject.CommonName, fingerprint(ours)),
		Mend: "if it is the wrong server, correct servers in agent.yaml; if the fleet has a new CA, remove what is here of the old one (" + d.Config.Dir +
			"; `puppet ssl clean --localca`) and join again",
	}, true
}

// skew is how far clocks may be apart.
const skew = 2 * time.Minute

// clock asks a server for the time; false if it has none to give.
func (d Doctor) clock(ctx context.Context, address string) (Finding, bool) {
	client := unproven(&url.URL{}).http // with a wrong clock no certificate is good; and the time is all that is asked for
	client.Timeout = d.Config.ConnectTimeout
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/status/v1/simple", nil)
	if err != nil {
		return Finding{}, false
	}
	response, err := client.Do(r)
	if err != nil {
		return Finding{}, false // the finding about the server says why
	}
	_ = response.Body.Close()
	there, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return Finding{}, false
	}
	apart := time.Since(there).Round(time.Second)
	if apart.Abs() > skew {
		way := "ahead of"
		if apart < 0 {
			way = "behind"
		}
		return Finding{
			Check: "clock", State: Broken, Found: fmt.Sprintf("%s %s that of %s", fault.Duration(apart.Abs()), way, address),
			Mend: "set both machines' clocks by NTP: certificates are good between two times",
		}, true
	}
	return good("clock", "as that of %s", address), true
}

func (d Doctor) data() Finding {
	data := d.Config.Data
	there, err := exists(data)
	if err == nil && !there {
		return Finding{Check: "data", State: Warning, Found: data + " is not there yet", Mend: "the agent makes it when it starts"}
	}
	file, err := os.CreateTemp(data, ".doctor-*")
	if err != nil {
		return Finding{
			Check: "data", State: Broken, Found: fmt.Sprintf("%s cannot be written: %v", data, cause(err)),
			Mend: "run this as the user that the agent runs as, or mend the directory's owner and mode",
		}
	}
	_ = file.Close()
	_ = os.Remove(file.Name())
	return good("data", "%s can be written", data)
}

// little is how much room is worth a warning.
const little = 200 << 20

func (d Doctor) space() Finding {
	dir := d.Config.Data
	for there, _ := exists(dir); !there && dir != filepath.Dir(dir); there, _ = exists(dir) {
		dir = filepath.Dir(dir)
	}
	free, err := freeBytes(dir)
	switch {
	case err != nil:
		return Finding{Check: "disk", State: Warning, Found: fmt.Sprintf("nobody knows how much room there is: %v", err), Mend: "look for it yourself"}
	case free < little:
		return Finding{
			Check: "disk", State: Broken, Found: fmt.Sprintf("%d MB are free for %s", free>>20, d.Config.Data),
			Mend: "make room: results that cannot be kept are not accepted",
		}
	}
	return good("disk", "%d MB are free", free>>20)
}

func (d Doctor) policy() Finding {
	path, text, err := d.Config.policy()
	switch {
	case err != nil:
		return Finding{Check: "policy", State: Broken, Found: fault.Detail(err), Mend: "mend the file: without it the agent does not start"}
	case path == "":
		return good("policy", "none: this node does what the server lets be done")
	}
	if _, err := orders.ParsePolicy(path, text); err != nil {
		return Finding{Check: "policy", State: Broken, Found: fault.Detail(err), Mend: "mend the file: the agent does not start with it"}
	}
	return good("policy", "%s", path)
}

// actionPolicies says which of them deny everything for being broken; nothing without a directory.
func (d Doctor) actionPolicies() []Finding {
	if d.Config.ActionPolicies == "" {
		return nil
	}
	if _, usable, err := d.Config.actionPolicies(); !usable {
		return []Finding{
			{Check: "action policies", State: Broken, Found: fault.Detail(err), Mend: "mend the directory, or action_policies: the agent does not start with it"},
		}
	} else if err != nil {
		return []Finding{{Check: "action policies", State: Broken, Found: fault.Detail(err), Mend: "mend the file, and start the agent anew"}}
	}
	return []Finding{good("action policies", "%s", d.Config.ActionPolicies)}
}

func (d Doctor) agent(ctx context.Context) Finding {
	status, err := AskStatus(ctx, d.Config)
	switch {
	case err != nil:
		return Finding{Check: "agent", State: Warning, Found: fault.Detail(err), Mend: "start it, or ask for its log: journalctl -u tutti-agent"}
	case !status.Connection.Connected:
		return Finding{
			Check: "agent", State: Broken, Found: "it runs, but is not connected: " + status.Connection.Problem, Mend: "mend what is found above", Unreachable: true,
		}
	}
	return good("agent", "runs, connected to %s", status.Connection.Server)
}
