package settings

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestDefaultsAreGood(t *testing.T) {
	t.Parallel()
	if err := Default().Check(); err != nil {
		t.Error(err)
	}
}

// The README says how often catalogs are compared with those of plain Puppet: as often as they are unless somebody sets something else.
func TestTheReadmeSaysHowOftenCatalogsAreCompared(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	share, err := Default().VerifiedShare()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("1 of %.0f compilations, and after each deploy one node for each of %d sets of classes, are compared with what plain Puppet gives",
		1/share, Default().VerifyAfterDeploy)
	if !strings.Contains(string(text), want) {
		t.Errorf("the README does not say: %s", want)
	}
}

func TestEverySettingHasAKeyAndHelp(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[Config]().Fields() {
		if field.Tag.Get("koanf") == "" || field.Tag.Get("help") == "" {
			t.Errorf("%s has no key or no help", field.Name)
		}
	}
}

func TestCheckNamesTheSetting(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Config){
		"setting data":                                    func(c *Config) { c.Data = "" },
		"setting listen":                                  func(c *Config) { c.Listen = "8140" },
		"setting database":                                func(c *Config) { c.Database = "mysql://x" },
		"setting ca_key_type":                             func(c *Config) { c.CAKeyType = "rsa-512" },
		"setting autosign:":                               func(c *Config) { c.Autosign = "yes" },
		"setting autosign_list":                           func(c *Config) { c.Autosign = "list" },
		"setting proxy_protocol_from: \"lb-1\"":           func(c *Config) { c.ProxyProtocolFrom = []string{"192.0.2.1", "lb-1"} },
		"setting proxy_protocol_from: it names everybody": func(c *Config) { c.ProxyProtocolFrom = []string{"192.0.2.1", "0.0.0.0/0"} },
		"setting connection_limit_exempt":                 func(c *Config) { c.ConnectionLimitExempt = []string{"lb-1"} },
		"setting log_level":                               func(c *Config) { c.LogLevel = "loud" },
		"setting log_format":                              func(c *Config) { c.LogFormat = "xml" },
		"setting broker_listen":                           func(c *Config) { c.BrokerListen = "8142" },
		"setting rbac_listen":                             func(c *Config) { c.RBACListen = "4433" },
		"setting broker_max_con":                          func(c *Config) { c.BrokerMaxConnections = -1 },
		"setting broker_max_mess":                         func(c *Config) { c.BrokerMaxMessageBytes = 0 },
		"setting broker_queue":                            func(c *Config) { c.BrokerQueueBytes = -1 },
		"setting broker_idle":                             func(c *Config) { c.BrokerIdleTimeout = 360 },
		"setting compile_timeout":                         func(c *Config) { c.CompileTimeout = 0 },
		"setting compile_workers":                         func(c *Config) { c.CompileWorkers = -1 },
		"setting report_retention":                        func(c *Config) { c.ReportRetention = -time.Hour },
		"setting version_retention":                       func(c *Config) { c.VersionRetention = 90 },
		"setting compile_patience":                        func(c *Config) { c.CompilePatience = 30 }, // "compile_patience: 30" in a file
		"setting puppetdb_clients":                        func(c *Config) { c.PuppetDBClients = []string{"ps.example", "No Name"} },
		"setting crl_lifetime":                            func(c *Config) { c.CRLLifetime = time.Hour },
		"setting request_ttl":                             func(c *Config) { c.RequestTTL = 30 },
		"setting max_requests:":                           func(c *Config) { c.MaxRequests = 0 },
		"setting node_ttl":                                func(c *Config) { c.NodeTTL = 7 },
		"setting node_purge_ttl":                          func(c *Config) { c.NodePurgeTTL = -time.Hour },
		"setting job_timeout":                             func(c *Config) { c.JobTimeout = 8 * 24 * time.Hour },
		"setting report_detail_ret":                       func(c *Config) { c.ReportDetailRetention = c.ReportRetention },
		"setting preview_retention":                       func(c *Config) { c.PreviewRetention = 90 },
		"setting job_retention":                           func(c *Config) { c.JobRetention = 90 },
		"setting max_load":                                func(c *Config) { c.MaxLoad = -1 },
		"setting idle_load":                               func(c *Config) { c.IdleLoad = -1 },
		"setting trusted_external":                        func(c *Config) { c.TrustedExternalCommand = "external.sh" },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := Default()
			spoil(&c)
			if err := c.Check(); fault.Of(err) != fault.Invalid || err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want Invalid beginning with %q", err, want)
			}
		})
	}
}

func TestReloadTakesOnlyWhatMayChange(t *testing.T) {
	t.Parallel()
	old, fresh := Default(), Default()
	fresh.Autosign, fresh.Listen, fresh.LogLevel = "all", ":9", "debug"
	applied, waiting := Merge(old, fresh)
	if applied.Autosign != "all" || applied.LogLevel != "debug" || applied.Listen != old.Listen {
		t.Errorf("applied %+v", applied)
	}
	if diff := cmp.Diff([]string{"listen"}, waiting); diff != "" {
		t.Errorf("what needs a restart (-want +got):\n%s", diff)
	}
}
