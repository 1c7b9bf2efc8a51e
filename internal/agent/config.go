package agent

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/agent/builtin/resource"
	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire"
)

// Config is every setting of an agent. One name serves three places: the key in
// agent.yaml (max_concurrent), the environment (TUTTI_AGENT_MAX_CONCURRENT) and the flag
// (--max-concurrent); the flag wins, then the environment, then the file.
type Config struct {
	Dir  string `koanf:"dir" help:"directory of agent.yaml, and of the certificates that 'tutti agent join' got"`
	Data string `koanf:"data" help:"directory for what the agent keeps: results, fetched files, its state; empty: the system's place, or DIR/data for another --dir"`

	Servers     []string `koanf:"servers" help:"Tutti servers, the preferred one first: https://HOST:8140"`
	BrokerURIs  []string `koanf:"broker_uris" help:"PCP brokers, if they are not at the servers: wss://HOST:8142/pcp2/"`
	PrimaryURIs []string `koanf:"primary_uris" help:"where files of tasks are fetched, if not from the servers: https://HOST:8140"`
	PCPVersion  int      `koanf:"pcp_version" help:"version of PCP: 2, or 1 for old brokers"`

	CAFile          string `koanf:"ca_file" help:"the CA's certificates, PEM; empty: DIR/ca.pem"`
	CertificateFile string `koanf:"certificate_file" help:"the node's certificate, PEM; empty: DIR/certificate.pem"`
	KeyFile         string `koanf:"key_file" help:"the node's private key, PEM; empty: DIR/key.pem"`
	CRLFile         string `koanf:"crl_file" help:"the CA's revocation list, PEM; empty: DIR/crl.pem"`

	Renew          time.Duration `koanf:"renew" help:"how long before its end a certificate that 'tutti agent join' got is renewed; 0: never"`
	RenewShared    bool          `koanf:"renew_shared" help:"renew the certificate and fetch the revocation list though the files are Puppet's, too; 'tutti agent join' sets it where it shares a certificate with puppet"`
	PolicyFile     string        `koanf:"policy_file" help:"what this node lets be done, YAML; it can only forbid; empty: DIR/policy.yaml if it is there"`
	ActionPolicies string        `koanf:"action_policies" help:"directory of action policy files as MCollective has them, MODULE.policy: who may ask for which action; they can only forbid; empty: none"`
	ModulesDir     string        `koanf:"modules_dir" help:"directory of further modules: executables as pxp-agent or Choria has them; empty: none"`
	ModulesConfig  string        `koanf:"modules_config_dir" help:"directory of those modules' settings, NAME.conf or NAME.cfg; empty: DIR/modules"`
	// EnvironmentModules is on by default: code that a node's catalogs are made of is trusted as far as modules of actions are.
	EnvironmentModules bool `koanf:"environment_modules" help:"use the modules of actions that the code of the node's environment supplies, MODULE/tutti/NAME; false: none"`

	TypesAllowed  []string `koanf:"resource_types_allowed" help:"types of which 'resource apply' may change resources of this node; with neither this nor resource_types_denied: none"`
	TypesDenied   []string `koanf:"resource_types_denied" help:"types of which it may not; all others it may then"`
	NamesAllowed  []string `koanf:"resource_names_allowed" help:"the only resources of their types that it may change, as type[name]"`
	NamesDenied   []string `koanf:"resource_names_denied" help:"resources that it may not change, as type[name]"`
	AllowManaged  bool     `koanf:"resource_allow_managed" help:"it may also change resources that Puppet manages"`
	Puppet        string   `koanf:"puppet" help:"path of puppet; empty: looked for"`
	MaxConcurrent int      `koanf:"max_concurrent" help:"commands, scripts and tasks that run at a time; a Puppet run is beside them"`

	Runs        string        `koanf:"runs" help:"scheduled: this agent lets Puppet run by itself; off: only when it is ordered to"`
	RunInterval time.Duration `koanf:"run_interval" help:"between scheduled runs"`
	RunSplay    time.Duration `koanf:"run_splay" help:"part of the interval that the fleet is spread over; 0: all of it"`
	RunNoop     bool          `koanf:"run_noop" help:"scheduled runs only show what they would change"`
	CatalogPoll time.Duration `koanf:"catalog_poll_interval" help:"how often a server is asked for a new catalog, beside being told by it"`

	FactsInterval time.Duration `koanf:"facts_interval" help:"how often facts are submitted apart from Puppet runs; 0: never"`
	FactsWatch    time.Duration `koanf:"facts_watch_interval" help:"how often the facts are looked at that the node's catalog read; a change is submitted at once; 0: never"`
	FactsTimeout  time.Duration `koanf:"facts_timeout" help:"how long Facter may take"`

	ConnectTimeout  time.Duration `koanf:"connect_timeout" help:"how long a server may take until a connection stands"`
	PingInterval    time.Duration `koanf:"ping_interval" help:"how often the server is asked whether it is there"`
	ReturnAfter     time.Duration `koanf:"return_after" help:"how often the first server is looked for while another one is connected"`
	MaxMessageBytes int64         `koanf:"max_message_bytes" help:"largest message, in bytes; the server has a limit of its own"`
	SpoolTTL        time.Duration `koanf:"spool_ttl" help:"how long results are kept"`
	CacheTTL        time.Duration `koanf:"cache_ttl" help:"how long fetched files are kept after their last use"`

	LogLevel  string `koanf:"log_level" help:"debug, info, warn or error"`
	LogFormat string `koanf:"log_format" help:"text or json"`
}

// Default is an agent's configuration when nothing is said.
func Default() Config {
	return Config{
		Dir:           defaultDir(),
		PCPVersion:    2,
		Renew:         60 * 24 * time.Hour,
		MaxConcurrent: 8,

		EnvironmentModules: true,

		Runs:            RunsOff,
		RunInterval:     30 * time.Minute,
		CatalogPoll:     15 * time.Minute,
		FactsInterval:   30 * time.Minute,
		FactsWatch:      5 * time.Minute,
		FactsTimeout:    5 * time.Minute,
		ConnectTimeout:  15 * time.Second,
		PingInterval:    time.Minute,
		ReturnAfter:     5 * time.Minute,
		MaxMessageBytes: 64 << 20,
		SpoolTTL:        14 * 24 * time.Hour,
		CacheTTL:        14 * 24 * time.Hour,
		LogLevel:        "info",
		LogFormat:       "text",
	}
}

// What Runs can be. It is off by default: most nodes have a service, timer or cron job of Puppet's own, and two
// schedules beside each other apply every catalog twice.
const (
	RunsOff       = "off"
	RunsScheduled = "scheduled"
)

// ConfigFile is the name of the settings' file in the directory.
const ConfigFile = "agent.yaml"

// Filled returns c with the paths that follow from others. All are absolute: programs run elsewhere.
func (c Config) Filled() Config {
	if dir, err := filepath.Abs(c.Dir); err == nil {
		c.Dir = dir
	}
	if c.Data == "" {
		c.Data = filepath.Join(c.Dir, "data")
		if filepath.Clean(c.Dir) == defaultDir() {
			c.Data = defaultData()
		}
	}
	for path, name := range map[*string]string{&c.CAFile: caName, &c.CertificateFile: certificateName, &c.KeyFile: keyName, &c.CRLFile: crlName} {
		if *path == "" {
			*path = filepath.Join(c.Dir, name)
		}
	}
	if c.ModulesConfig == "" {
		c.ModulesConfig = filepath.Join(c.Dir, "modules")
	}
	for _, path := range []*string{&c.Data, &c.ModulesConfig, &c.CAFile, &c.CertificateFile, &c.KeyFile, &c.CRLFile} {
		if absolute, err := filepath.Abs(*path); err == nil {
			*path = absolute
		}
	}
	return c
}

// dirFlag is what a command needs to find an agent that is not at the usual place; empty for the one that is.
func (c Config) dirFlag() string {
	if filepath.Clean(c.Dir) == defaultDir() {
		return ""
	}
	return " --dir " + c.Dir
}

// ownsCertificates tells that the agent looks after the certificate: it renews it, and fetches the revocation list.
func (c Config) ownsCertificates() bool {
	return c.RenewShared || filepath.Dir(c.CertificateFile) == filepath.Clean(c.Dir)
}

// Check returns an Invalid fault for the first setting that cannot be used. It looks
// at values only, not at what is on disk.
func (c Config) Check() error {
	if len(c.Servers)+len(c.BrokerURIs) == 0 {
		return fault.New(fault.Invalid, "no server is set; join one with `tutti agent join https://HOST:8140`, or set servers in %s",
			filepath.Join(c.Dir, ConfigFile))
	}
	for _, text := range c.Servers {
		if _, err := ParseServer(text); err != nil {
			return bad("servers", "%s", fault.Detail(err))
		}
	}
	for _, text := range c.PrimaryURIs {
		if _, err := ParseServer(text); err != nil {
			return bad("primary_uris", "%s", fault.Detail(err))
		}
	}
	for _, text := range c.BrokerURIs {
		if err := connection.CheckURL(text); err != nil {
			return bad("broker_uris", "%s", fault.Detail(err))
		}
		if !strings.HasPrefix(text, "wss://") {
			return bad("broker_uris", "%q: only wss:// is secure", text)
		}
	}
	if c.PCPVersion != int(wire.V1) && c.PCPVersion != int(wire.V2) {
		return bad("pcp_version", "%d is neither 1 nor 2", c.PCPVersion)
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		return bad("log_level", "%q is none of debug, info, warn, error", c.LogLevel)
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		return bad("log_format", "%q is none of text, json", c.LogFormat)
	}
	if err := c.checkRuns(); err != nil {
		return err
	}
	if err := c.checkFacts(); err != nil {
		return err
	}
	if err := c.resources().Check(); err != nil {
		return err
	}
	return c.checkNumbers()
}

func (c Config) checkNumbers() error {
	if c.MaxConcurrent <= 0 || c.MaxMessageBytes < 1<<10 {
		return bad("max_concurrent, max_message_bytes", "they must be larger than zero, and a message may have at least 1024 bytes")
	}
	for key, value := range map[string]time.Duration{
		"connect_timeout": c.ConnectTimeout, "ping_interval": c.PingInterval, "return_after": c.ReturnAfter, "spool_ttl": c.SpoolTTL, "cache_ttl": c.CacheTTL,
		"run_interval": c.RunInterval, "catalog_poll_interval": c.CatalogPoll,
	} {
		if value < time.Millisecond { // a bare number is nanoseconds, which nobody means
			return bad(key, "%s is too short; write a number with its unit, for example 90s, 5m or 24h", value)
		}
	}
	if c.Renew != 0 && c.Renew < time.Hour {
		return bad("renew", "%s is too short; write for example 720h, or 0 for never", c.Renew)
	}
	return nil
}

// resources are the settings of the built-in modules that look at resources, and change one.
func (c Config) resources() resource.Config {
	return resource.Config{
		Puppet: func() (string, error) { return findPuppet(c.Puppet) }, Dir: filepath.Join(c.Data, "ruby"),
		TypesAllowed: c.TypesAllowed, TypesDenied: c.TypesDenied, NamesAllowed: c.NamesAllowed, NamesDenied: c.NamesDenied, AllowManaged: c.AllowManaged,
	}
}

// brokers are the addresses for PCP.
func (c Config) brokers() []string {
	if len(c.BrokerURIs) > 0 {
		return c.BrokerURIs
	}
	all := make([]string, 0, len(c.Servers))
	for _, text := range c.Servers {
		u, _ := ParseServer(text) // Check has seen it
		all = append(all, "wss://"+u.Host)
	}
	return all
}

// primaries are the addresses for files, https://HOST:PORT.
func (c Config) primaries() []string {
	from := c.PrimaryURIs
	if len(from) == 0 {
		from = c.Servers
	}
	all := make([]string, 0, len(from))
	for _, text := range from {
		u, _ := ParseServer(text) // Check has seen it
		all = append(all, u.String())
	}
	return all
}

// defaultPort is a Tutti server's, and a Puppet server's.
const defaultPort = "8140"

// ParseServer reads the address of a server: https://HOST:PORT, HOST:PORT or HOST.
func ParseServer(text string) (*url.URL, error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "https://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Invalid, "the server's address must look like https://HOST:8140, not %.200q", text)
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil,
			fault.New(fault.Invalid, "the server's address has port %.20s; ports are 1 to 65535, and the server's is %s if nobody chose another", port, defaultPort)
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(u.Hostname(), port)}, nil
}

func bad(key, format string, args ...any) error {
	return fault.New(fault.Invalid, "setting "+key+": "+format, args...)
}
