package agent

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// stubPuppet is a puppet that has only settings.
type stubPuppet struct {
	t        *testing.T
	dir      string
	settings map[string]string
}

func newStubPuppet(t *testing.T, name string) *stubPuppet {
	t.Helper()
	p := &stubPuppet{t: t, dir: t.TempDir()}
	p.settings = map[string]string{
		"certname": name, "server": "puppet", "serverport": "8140", "server_list": "[]", "ca_server": "puppet", "user": "nobody-here", "group": "nobody-here",
		"ssldir": p.path(), "certdir": p.path("certs"), "privatekeydir": p.path("private_keys"), "requestdir": p.path("certificate_requests"),
		"localcacert": p.path("certs", "ca.pem"), "hostcrl": p.path("crl.pem"), "config": p.path("puppet.conf"), "csr_attributes": p.path("csr_attributes.yaml"),
	}
	for _, dir := range []string{"certs", "private_keys"} {
		must(t, os.MkdirAll(p.path(dir), 0o755))
	}
	return p
}

func (p *stubPuppet) path(parts ...string) string {
	return filepath.Join(append([]string{p.dir}, parts...)...)
}

// write makes the program.
func (p *stubPuppet) write() string {
	p.t.Helper()
	var text strings.Builder
	text.WriteString("#!/bin/sh\nif [ \"$1\" = --version ]; then echo 7.0.0; exit; fi\n")
	for name, value := range p.settings {
		fmt.Fprintf(&text, "echo '%s = %s'\n", name, value)
	}
	return programtest.Write(p.t, p.path("puppet"), text.String())
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to, text, 0o600))
}

// The doctor finds what keeps the agent and Puppet from being one node, says how bad that is, and how it is mended.
func TestDoctorOnPuppet(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	_, open, err := net.SplitHostPort(listener.Addr().String())
	must(t, err)
	for name, c := range map[string]struct {
		set    func(t *testing.T, p *stubPuppet, c *Config)
		check  string
		state  Verdict
		found  string
		mended string
	}{
		"one certificate": {func(_ *testing.T, p *stubPuppet, c *Config) {
			c.KeyFile = p.path("private_keys", "web-1.pem")
		}, "puppet certificate", Good, "is this agent's", ""},
		"the same key": {func(t *testing.T, p *stubPuppet, c *Config) {
			t.Helper()
			copyFile(t, c.KeyFile, p.path("private_keys", "web-1.pem"))
		}, "puppet certificate", Good, "has this agent's key", ""},
		"two keys": {func(t *testing.T, p *stubPuppet, _ *Config) {
			t.Helper()
			_, text, err := newKey()
			must(t, err)
			must(t, os.WriteFile(p.path("private_keys", "web-1.pem"), text, 0o600))
		}, "puppet certificate", Broken, "there are two keys for web-1", "puppet ssl clean; then tutti agent join https://127.0.0.1:" + open},
		"no key yet": {
			func(*testing.T, *stubPuppet, *Config) {}, "puppet certificate", Warning, "Puppet has none for web-1", "tutti agent join https://127.0.0.1:" + open,
		},
		"another name": {func(_ *testing.T, p *stubPuppet, _ *Config) {
			p.settings["certname"] = "web-2"
		}, "puppet certificate", Warning, "Puppet is configured as web-2, and this agent is web-1", "puppet config set certname web-1"},
		"another name, and a directory of its own": {func(_ *testing.T, p *stubPuppet, c *Config) {
			p.settings["certname"], c.Dir = "web-2", "/own"
		}, "puppet certificate", Warning, "Puppet is configured as web-2", "`tutti agent join https://127.0.0.1:" + open + " --dir /own --puppet PATH`"},
		"another name, and it runs": {func(_ *testing.T, p *stubPuppet, c *Config) {
			p.settings["certname"], c.Runs = "web-2", RunsScheduled
		}, "puppet certificate", Broken, "Puppet is configured as web-2", "--certname web-2"},
		"another CA": {func(t *testing.T, p *stubPuppet, c *Config) {
			t.Helper()
			copyFile(t, c.KeyFile, p.path("private_keys", "web-1.pem"))
			other, _ := pkitest.Open(t).Bundle()
			must(t, os.WriteFile(p.path("certs", "ca.pem"), other, 0o600))
		}, "puppet certificate", Broken, "Puppet trusts another CA", "puppet ssl clean --localca"},
		"the agent's server": {func(_ *testing.T, p *stubPuppet, _ *Config) {
			p.settings["server"], p.settings["serverport"] = "127.0.0.1", open
		}, "puppet server", Good, "127.0.0.1:" + open, ""},
		"by another name": {func(_ *testing.T, p *stubPuppet, c *Config) {
			p.settings["server"], p.settings["serverport"] = "127.0.0.1", open
			c.Servers = []string{"https://localhost:" + open}
		}, "puppet server", Good, "127.0.0.1:" + open, ""},
		"another server": {
			func(_ *testing.T, p *stubPuppet, c *Config) {
				p.settings["server"], p.settings["serverport"] = "127.0.0.1", open
				c.Servers = []string{"https://tutti.invalid:8140"}
			}, "puppet server", Warning, "Puppet asks 127.0.0.1:" + open + ", and this agent https://tutti.invalid:8140",
			"puppet config set server tutti.invalid; puppet config set serverport 8140",
		},
		"a closed port": {func(_ *testing.T, p *stubPuppet, c *Config) {
			p.settings["server"], p.settings["serverport"] = "127.0.0.1", "1"
			c.KeyFile = p.path("private_keys", "web-1.pem")
		}, "puppet server", Broken, "Puppet asks 127.0.0.1:1, which cannot be reached", "nothing listens on that port"},
		"an unknown name": {func(_ *testing.T, p *stubPuppet, _ *Config) {
			p.settings["server"] = "puppet.invalid"
		}, "puppet server", Warning, "Puppet asks puppet.invalid:8140, which cannot be reached", "no machine is called puppet.invalid"},
		"other servers in a list": {func(_ *testing.T, p *stubPuppet, _ *Config) {
			p.settings["server_list"] = `[["old.example"]]`
		}, "puppet server", Warning, "server_list", "remove server_list from"},
		"no Puppet": {func(_ *testing.T, p *stubPuppet, c *Config) {
			c.Puppet = p.path("none")
		}, "puppet", Warning, "there is no", "`tutti agent join` again"},
		"a Puppet that does not start": {func(t *testing.T, p *stubPuppet, c *Config) {
			t.Helper()
			c.Puppet = programtest.Write(t, p.path("broken"), "#!/bin/sh\necho 'no ruby' >&2\nexit 1\n")
		}, "puppet", Broken, "no ruby", "mend the installation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := enrolled(t, pkitest.Open(t), "web-1")
			id, err := LoadIdentity(config)
			must(t, err)
			config.Servers, config.ConnectTimeout = []string{"https://127.0.0.1:" + open}, 5*time.Second
			p := newStubPuppet(t, "web-1")
			config.Puppet = p.path("puppet")
			c.set(t, p, &config)
			p.write()
			holds(t, Doctor{Config: config}.puppet(t.Context(), id), Finding{Check: c.check, State: c.state, Found: c.found, Mend: c.mended})
		})
	}
}

// holds looks for a finding; what it found and the way out are parts of the texts.
func holds(t *testing.T, all []Finding, want Finding) {
	t.Helper()
	for _, f := range all {
		if f.Check != want.Check {
			continue
		}
		if f.State != want.State || !strings.Contains(f.Found, want.Found) || !strings.Contains(f.Mend, want.Mend) || (f.Mend == "") != (f.State == Good) {
			t.Errorf("found %+v, want %+v", f, want)
		}
		return
	}
	t.Errorf("no %s in %+v", want.Check, all)
}

// A clock is looked at without a certificate: with a wrong clock none is good.
func TestDoctorOnClocks(t *testing.T) {
	t.Parallel()
	for off, want := range map[time.Duration]Finding{
		0:          {State: Good, Found: "as that of"},
		time.Hour:  {State: Broken, Found: "behind that of", Mend: "NTP"},
		-time.Hour: {State: Broken, Found: "ahead of that of", Mend: "NTP"},
	} {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat))
		}))
		t.Cleanup(s.Close)
		f, ok := Doctor{Config: Config{ConnectTimeout: 5 * time.Second}}.clock(t.Context(), s.URL)
		want.Check = "clock"
		if !ok {
			t.Errorf("%s: nothing is found", off)
		}
		holds(t, []Finding{f}, want)
	}
}

// What is wrong with the way to a server is told apart.
func TestDoctorOnServers(t *testing.T) {
	t.Parallel()
	config := enrolled(t, pkitest.Open(t), "web-1")
	config.ConnectTimeout, config.PCPVersion = 300*time.Millisecond, 2
	id, err := LoadIdentity(config)
	must(t, err)
	var theirs []byte
	foreign := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(theirs) }))
	t.Cleanup(foreign.Close)
	theirs = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: foreign.Certificate().Raw})
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for address, want := range map[string]Finding{
		"wss" + strings.TrimPrefix(foreign.URL, "https"): {Found: "it is of another CA (", Mend: "remove what is here of the old one"},
		"wss://127.0.0.1:1":               {Found: "refused", Mend: "nothing listens on that port"},
		"wss://tutti.invalid:8140":        {Found: "tutti.invalid", Mend: "no machine is called tutti.invalid"},
		"wss://" + silent.Addr().String(): {Found: "no answer within", Mend: "firewalls in between"},
	} {
		want.Check, want.State = "server "+address, Broken
		f := Doctor{Config: config}.broker(t.Context(), id, address)
		holds(t, []Finding{f}, want)
		if strings.Contains(want.Found, "another CA") &&
			(f.Unreachable || !strings.Contains(f.Found, fingerprint(foreign.Certificate())) || !strings.Contains(f.Found, fingerprint(id.authorities()[0]))) {
			t.Errorf("both CAs should be named: %+v", f)
		}
	}
}

// A renewed certificate takes the place of the one that Puppet shares: its owner and mode stay.
func TestRewrittenFilesKeepTheirMode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "certificate.pem")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	must(t, os.Chmod(path, 0o640))
	if os.Geteuid() == 0 {
		must(t, os.Chown(path, 12345, 54321))
	}
	must(t, rewrite(path, []byte("new"), 0o644))
	info, err := os.Stat(path)
	must(t, err)
	if text, _ := os.ReadFile(path); string(text) != "new" || info.Mode() != 0o640 {
		t.Errorf("%q %s", text, info.Mode())
	}
	if o := ownerOf(info); os.Geteuid() == 0 && (o == nil || *o != owner{12345, 54321}) {
		t.Errorf("it belongs to %+v", o)
	}
}

// Puppet's settings that are of another fleet are in the way before anything else is looked at.
func TestNeighboursThatDoNotFit(t *testing.T) {
	t.Parallel()
	server, err := ParseServer("https://tutti.example:8140")
	must(t, err)
	for name, c := range map[string]struct {
		set  map[string]string
		want string
	}{
		"fresh":              {nil, ""},
		"a list of servers":  {map[string]string{"server_list": `[["old.example", "8140"]]`}, "server_list"},
		"a list with ours":   {map[string]string{"server_list": `[["tutti.example", "8140"]]`}, ""},
		"another CA's":       {map[string]string{"ca_server": "ca.example"}, "ca_server"},
		"another name":       {map[string]string{"certname": "old"}, "--certname old"},
		"a name never used":  {map[string]string{"certname": "fresh"}, ""},
		"our server as CA's": {map[string]string{"ca_server": "tutti.example"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newStubPuppet(t, "web-1")
			maps.Copy(p.settings, c.set)
			old := enrolled(t, pkitest.Open(t), "old")
			copyFile(t, old.CertificateFile, p.path("certs", "old.pem"))
			n, err := askNeighbour(t.Context(), p.write())
			must(t, err)
			err = n.fits(fleet.Certname("web-1"), server)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Puppet's own service beside the agent's schedule applies everything twice.
func TestDoctorOnTwoSchedules(t *testing.T) {
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, "systemctl"), "#!/bin/sh\n[ \"$2\" = puppet.service ] && echo active\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	p := newStubPuppet(t, "web-1")
	config := Config{Runs: RunsScheduled, Puppet: p.write()}
	holds(t, []Finding{Doctor{Config: config}.runs(t.Context())}, Finding{
		Check: "runs", State: Warning, Found: "puppet.service lets Puppet run, too", Mend: "systemctl disable --now puppet.service",
	})
	if unit := OtherSchedule(t.Context()); unit != "puppet.service" {
		t.Errorf("the other schedule is %q", unit)
	}
	config.Runs = RunsOff
	holds(t, []Finding{Doctor{Config: config}.runs(t.Context())}, Finding{Check: "runs", State: Good, Found: "off"})
}
