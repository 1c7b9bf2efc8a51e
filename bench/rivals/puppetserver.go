package rivals

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// PuppetserverConfig says how Puppet Server is to run.
type PuppetserverConfig struct {
	Dir             string // an empty directory
	EnvironmentPath string // holds the environments
	BaseModulePath  string
	JRubies         int
	Heap            string   // for -Xms and -Xmx, such as "1g"
	JavaArgs        []string // more of them

	// SSLDir is where an agent of another CA keeps its certificate (`puppet ssl
	// bootstrap`), and Certname its name: the server takes both for its own. Empty:
	// the certificate comes from a CA made for the run.
	SSLDir, Certname string
	// PuppetDB is the https address of what the server sends facts, catalogs and
	// reports to, and asks for exported resources. Empty: none.
	PuppetDB string
	// Address is where it listens; empty: 127.0.0.1.
	Address string
}

const (
	puppetserverJar     = "/usr/share/puppetserver/puppetserver.jar"
	puppetserverPackage = "puppetserver"
)

// Puppetserver is Debian's Puppet Server without its CA service.
type Puppetserver struct {
	ca      *CA // nil: the server has a certificate of another CA
	proc    *process
	address string
	port    int
}

// StartPuppetserver writes a configuration, starts the server and waits until it
// says that it runs, or ctx is done.
func StartPuppetserver(ctx context.Context, c PuppetserverConfig) (*Puppetserver, error) {
	java, err := need("java", "default-jre-headless "+puppetserverPackage)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(puppetserverJar); err != nil {
		return nil, &MissingError{Program: "Puppet Server", Install: "apt-get install --no-install-recommends " + puppetserverPackage}
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	c.Address = cmp.Or(c.Address, "127.0.0.1")
	ca, err := c.write(port)
	if err != nil {
		return nil, fmt.Errorf("configure puppetserver: %w", err)
	}
	proc, err := start(ctx, command{
		path: java, dir: c.Dir, log: filepath.Join(c.Dir, "server.log"),
		args: slices.Concat(c.JavaArgs, []string{
			"-Xms" + c.Heap, "-Xmx" + c.Heap,
			"-Djruby.logger.class=com.puppetlabs.jruby_utils.jruby.Slf4jLogger", "-Dlogappender=STDOUT",
			"-Djruby.lib=/usr/share/jruby/lib", "-XX:+CrashOnOutOfMemoryError",
			"-XX:ErrorFile=" + filepath.Join(c.Dir, "crash.log"),
			"-jar", puppetserverJar,
			"--config", filepath.Join(c.Dir, "conf.d"), "--bootstrap-config", filepath.Join(c.Dir, "services.d"),
		}),
	})
	if err != nil {
		return nil, err
	}
	s := &Puppetserver{ca: ca, proc: proc, address: c.Address, port: port}
	if err := s.proc.waitFor(ctx, s.running); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Puppetserver) running(ctx context.Context) bool {
	return getOK(ctx, s.URL()+"/status/v1/simple", blind(), "running")
}

// Name implements [Target].
func (s *Puppetserver) Name() string { return "puppetserver" }

// Version implements [Target].
func (s *Puppetserver) Version(ctx context.Context) string {
	return packageVersion(ctx, puppetserverPackage)
}

// URL implements [Target].
func (s *Puppetserver) URL() string {
	return "https://" + net.JoinHostPort(s.address, strconv.Itoa(s.port))
}

// Port is the port of URL.
func (s *Puppetserver) Port() string { return strconv.Itoa(s.port) }

// Log is the end of what the server wrote.
func (s *Puppetserver) Log() string { return s.proc.tail() }

// Client implements [Target].
func (s *Puppetserver) Client(_ context.Context, certname string) (*tls.Config, error) {
	if s.ca == nil {
		return nil, errors.New("the certificates of this Puppet Server come from another CA")
	}
	return s.ca.Client(certname)
}

// Usage implements [Target].
func (s *Puppetserver) Usage() (measure.Usage, error) { return s.proc.usage() }

// Stop implements [Target].
func (s *Puppetserver) Stop() error { return s.proc.stop(syscall.SIGTERM) }

// write lays out the private configuration directory.
func (c PuppetserverConfig) write(port int) (*CA, error) {
	for _, dir := range []string{"conf.d", "services.d", "puppet", "ssl", "code", "var", "run", "log"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, dir), 0o750); err != nil {
			return nil, err
		}
	}
	ca, certificates, err := c.certificates()
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer(append(certificates,
		"@DIR@", c.Dir, "@ENVIRONMENTS@", c.EnvironmentPath, "@MODULES@", c.BaseModulePath,
		"@JRUBIES@", strconv.Itoa(c.JRubies), "@ADDRESS@", c.Address, "@PORT@", strconv.Itoa(port), "@PUPPETDB@", c.PuppetDB, "@STORES@",
		strconv.FormatBool(c.PuppetDB != ""))...)
	files := maps.Clone(puppetserverFiles)
	if c.PuppetDB == "" {
		files["puppet/puppet.conf"] += puppetserverAlone
	} else {
		files["puppet/puppet.conf"] += puppetserverStores
		maps.Copy(files, terminusFiles)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(fill.Replace(text)), 0o600); err != nil {
			return nil, err
		}
	}
	return ca, nil
}

// certificates says which ones the server shows, as pairs of placeholder and value.
func (c PuppetserverConfig) certificates() (*CA, []string, error) {
	if c.SSLDir != "" {
		return nil, []string{
			"@CERTNAME@", c.Certname, "@SSLDIR@", c.SSLDir,
			"@CERT@", filepath.Join(c.SSLDir, "certs", c.Certname+".pem"),
			"@KEY@", filepath.Join(c.SSLDir, "private_keys", c.Certname+".pem"),
			"@CA@", filepath.Join(c.SSLDir, "certs", "ca.pem"), "@CRL@", filepath.Join(c.SSLDir, "crl.pem"),
		}, nil
	}
	dir := filepath.Join(c.Dir, "ssl")
	ca, err := NewCA(dir)
	if err != nil {
		return nil, nil, err
	}
	cert, key, err := ca.IssueFiles(dir, "localhost")
	return ca, []string{
		"@CERTNAME@", "localhost", "@SSLDIR@", filepath.Join(dir, "puppet"),
		"@CERT@", cert, "@KEY@", key, "@CA@", ca.CertPath, "@CRL@", ca.CRLPath,
	}, err
}

// puppetserverFiles is the whole configuration. What is not said here keeps
// its default. Environments are cached for good, as every tuning guide asks;
// logs go where the package's go: one server log, one access log.
var puppetserverFiles = map[string]string{
	"puppet/puppet.conf": `[main]
certname = @CERTNAME@
confdir = @DIR@/puppet
ssldir = @SSLDIR@
vardir = @DIR@/var
logdir = @DIR@/log
rundir = @DIR@/run
codedir = @DIR@/code
environmentpath = @ENVIRONMENTS@
basemodulepath = @MODULES@
environment_timeout = unlimited
manage_internal_file_permissions = false
`,
	"conf.d/global.conf":  "global: { logging-config: @DIR@/logback.xml }\n",
	"conf.d/metrics.conf": "metrics: { server-id: localhost }\n",
	"conf.d/puppetserver.conf": `jruby-puppet: {
  ruby-load-path: [/usr/lib/puppetserver/ruby/vendor_ruby]
  gem-home: @DIR@/gems
  gem-path: ["@DIR@/gems", "/usr/lib/puppetserver/vendored-jruby-gems"]
  server-conf-dir: @DIR@/puppet
  server-code-dir: @DIR@/code
  server-var-dir: @DIR@/var
  server-run-dir: @DIR@/run
  server-log-dir: @DIR@/log
  max-active-instances: @JRUBIES@
  track-lookups: @STORES@ # the keys that a compilation asked Hiera for
}
http-client: {}
profiler: {}
dropsonde: { enabled: false }
product: { check-for-updates: false }
`,
	"conf.d/web-routes.conf": `web-router-service: {
  "puppetlabs.services.ca.certificate-authority-service/certificate-authority-service": "/puppet-ca"
  "puppetlabs.services.master.master-service/master-service": "/puppet"
  "puppetlabs.services.legacy-routes.legacy-routes-service/legacy-routes-service": ""
  "puppetlabs.services.puppet-admin.puppet-admin-service/puppet-admin-service": "/puppet-admin-api"
  "puppetlabs.trapperkeeper.services.status.status-service/status-service": "/status"
  "puppetlabs.trapperkeeper.services.metrics.metrics-service/metrics-webservice": "/metrics"
}
`,
	"conf.d/webserver.conf": `webserver: {
  access-log-config: @DIR@/request-logging.xml
  client-auth: want
  ssl-host: @ADDRESS@
  ssl-port: @PORT@
  ssl-cert: @CERT@
  ssl-key: @KEY@
  ssl-ca-cert: @CA@
  ssl-crl-path: @CRL@
}
`,
	"conf.d/auth.conf": `authorization: {
  version: 1
  rules: [
    { match-request: { path: "^/puppet/v3/catalog/([^/]+)$", type: regex, method: [get, post] }, allow: "$1", sort-order: 500, name: "catalog" }
    { match-request: { path: "^/puppet/v3/(node|report)/([^/]+)$", type: regex, method: [get, put] }, allow: "$2", sort-order: 500, name: "node and report" }
    { match-request: { path: "/puppet/v3/file_", type: path }, allow: "*", sort-order: 500, name: "files" }
    { match-request: { path: "/status/v1/simple", type: path, method: get }, allow-unauthenticated: true, sort-order: 500, name: "status" }
    { match-request: { path: "/", type: path }, deny: "*", sort-order: 999, name: "deny all" }
  ]
}
`,
	"services.d/bootstrap.cfg": `puppetlabs.services.request-handler.request-handler-service/request-handler-service
puppetlabs.services.jruby.jruby-puppet-service/jruby-puppet-pooled-service
puppetlabs.services.jruby-pool-manager.jruby-pool-manager-service/jruby-pool-manager-service
puppetlabs.services.puppet-profiler.puppet-profiler-service/puppet-profiler-service
puppetlabs.trapperkeeper.services.webserver.jetty9-service/jetty9-service
puppetlabs.trapperkeeper.services.webrouting.webrouting-service/webrouting-service
puppetlabs.services.config.puppet-server-config-service/puppet-server-config-service
puppetlabs.services.master.master-service/master-service
puppetlabs.services.puppet-admin.puppet-admin-service/puppet-admin-service
puppetlabs.trapperkeeper.services.authorization.authorization-service/authorization-service
puppetlabs.services.versioned-code-service.versioned-code-service/versioned-code-service
puppetlabs.trapperkeeper.services.scheduler.scheduler-service/scheduler-service
puppetlabs.trapperkeeper.services.status.status-service/status-service
puppetlabs.trapperkeeper.services.metrics.metrics-service/metrics-service
puppetlabs.trapperkeeper.services.metrics.metrics-service/metrics-webservice
puppetlabs.services.jruby.jruby-metrics-service/jruby-metrics-service
puppetlabs.services.ca.certificate-authority-disabled-service/certificate-authority-disabled-service
puppetlabs.trapperkeeper.services.watcher.filesystem-watch-service/filesystem-watch-service
`,
	"logback.xml": `<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5p [%t] [%c{2}] %m%n</pattern></encoder>
  </appender>
  <root level="info"><appender-ref ref="STDOUT"/></root>
</configuration>
`,
	"request-logging.xml": `<configuration debug="false">
  <appender name="FILE" class="ch.qos.logback.core.FileAppender">
    <file>@DIR@/log/access.log</file>
    <encoder><pattern>%h %l %u [%t] "%r" %s %b "%i{Referer}" "%i{User-Agent}" %D %i{Content-Length} %mdc{jruby.borrow-time:--}</pattern></encoder>
  </appender>
  <appender-ref ref="FILE"/>
</configuration>
`,
}

// puppetserverAlone and puppetserverStores say what becomes of facts, catalogs and reports.
const (
	puppetserverAlone  = "storeconfigs = false\nreports = none\n"
	puppetserverStores = "storeconfigs = true\nstoreconfigs_backend = puppetdb\nreports = puppetdb\n"
)

// terminusFiles is the configuration of Debian's puppet-terminus-puppetdb, as its
// README asks for it.
var terminusFiles = map[string]string{
	"puppet/puppetdb.conf": "[main]\nserver_urls = @PUPPETDB@\n",
	"puppet/routes.yaml":   "---\nmaster:\n  facts:\n    terminus: puppetdb\n    cache: yaml\n",
}
