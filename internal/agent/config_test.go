package agent

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestServersOfAConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config             Config
		brokers, primaries []string
	}{
		"Tutti": {
			Config{Servers: []string{"tutti.example.test", "https://b:18140/"}}, []string{"wss://tutti.example.test:8140", "wss://b:18140"}, []string{
				"https://tutti.example.test:8140", "https://b:18140",
			},
		},
		"original": {Config{BrokerURIs: []string{"wss://p:8142/pcp2/"}, PrimaryURIs: []string{"p"}}, []string{"wss://p:8142/pcp2/"}, []string{"https://p:8140"}},
		"both":     {Config{Servers: []string{"[::1]"}, BrokerURIs: []string{"wss://p:8142"}}, []string{"wss://p:8142"}, []string{"https://[::1]:8140"}},
	} {
		if diff := cmp.Diff([][]string{c.brokers, c.primaries}, [][]string{c.config.brokers(), c.config.primaries()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSettingsThatCannotBe(t *testing.T) {
	t.Parallel()
	good := Default()
	good.Servers = []string{"https://tutti.example.test"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"no server is set":            func(c *Config) { c.Servers = nil },
		"setting servers":             func(c *Config) { c.Servers = []string{"http://x"} },
		"must look like":              func(c *Config) { c.Servers = []string{"https://x/y"} },
		"setting primary_uris":        func(c *Config) { c.PrimaryURIs = []string{"https://a:b@x"} },
		"setting broker_uris":         func(c *Config) { c.BrokerURIs = []string{"x"} },
		"only wss":                    func(c *Config) { c.BrokerURIs = []string{"ws://x"} },
		"neither 1 nor 2":             func(c *Config) { c.PCPVersion = 3 },
		"setting log_level":           func(c *Config) { c.LogLevel = "loud" },
		"setting log_format":          func(c *Config) { c.LogFormat = "xml" },
		"setting max_concurrent":      func(c *Config) { c.MaxConcurrent = 0 },
		"setting ping_interval":       func(c *Config) { c.PingInterval = 60 },
		"setting renew: 1s":           func(c *Config) { c.Renew = time.Second },
		"only one of them may be set": func(c *Config) { c.TypesAllowed, c.TypesDenied = []string{"file"}, []string{"exec"} },
		"is not of the form type":     func(c *Config) { c.NamesAllowed = []string{"file"} },
		"a message may have at least": func(c *Config) { c.MaxMessageBytes = 3 },
	} {
		c := good
		change(&c)
		if err := c.Check(); fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want Invalid with %q", err, want)
		}
	}
}

func TestPlacesFollowTheDirectory(t *testing.T) {
	t.Parallel()
	usual := Default().Filled()
	if usual.Data != defaultData() || filepath.Dir(usual.KeyFile) != defaultDir() || !usual.ownsCertificates() {
		t.Errorf("usual places: %+v", usual)
	}
	dir := t.TempDir()
	other := Config{Dir: dir, CertificateFile: filepath.Join(dir, "elsewhere", "x.pem")}.Filled()
	if other.Data != filepath.Join(dir, "data") || other.CRLFile != filepath.Join(dir, crlName) || other.ownsCertificates() {
		t.Errorf("other places: %+v", other)
	}
}

func TestNamesOfPXPAgent(t *testing.T) {
	t.Parallel()
	got, err := PXPAgentNames(map[string]any{
		"broker-ws-uris": []any{"wss://a:8142/pcp2/"}, "broker-ws-uri": "wss://b", "master-uris": []any{"https://a:8140"}, "pcp-version": "2", "ssl-ca-cert": "/ca",
		"ssl-cert": "/cert", "ssl-key": "/key", "ssl-crl": "/crl", "loglevel": "warning", "spool-dir-purge-ttl": "14d", "logfile": "-", "ping-interval": 120,
		"max_concurrent": 3, "odd": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"broker_uris": []any{"wss://a:8142/pcp2/"}, "primary_uris": []any{"https://a:8140"}, "pcp_version": "2", "ca_file": "/ca", "certificate_file": "/cert",
		"key_file": "/key", "crl_file": "/crl", "log_level": "warn", "spool_ttl": "336h0m0s", "ping_interval": "120s", "max_concurrent": 3, "odd": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "14", "d", "-1d", "14w", "999999999d"} {
		if _, err := PXPAgentNames(map[string]any{"spool-dir-purge-ttl": text}); fault.Of(err) != fault.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	single, err := PXPAgentNames(map[string]any{"broker-ws-uri": "wss://b"})
	if diff := cmp.Diff(map[string]any{"broker_uris": []any{"wss://b"}}, single); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
