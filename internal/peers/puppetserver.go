package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tutti-project/tutti/internal/peers/measure"
)

// PuppetserverConfig says how Puppet Server is to run.
type PuppetserverConfig struct {
	Dir             string // an empty directory
	EnvironmentPath string // holds the environments
	BaseModulePath  string
	JRubies         int
	Heap            string // for -Xms and -Xmx, such as "1g"
}

const (
	puppetserverJar     = "/usr/share/puppetserver/puppetserver.jar"
	puppetserverPackage = "puppetserver"
)

// Puppetserver is Debian's Puppet Server with certificates of ours, without
// its CA service and without PuppetDB.
type Puppetserver struct {
	ca   *CA
	proc *process
	port int
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
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	ca, err := c.write(port)
	if err != nil {
		return nil, fmt.Errorf("configure puppetserver: %w", err)
	}
	proc, err := start(ctx, command{
		path: java, dir: c.Dir, log: filepath.Join(c.Dir, "server.log"),
		args: []string{
			"-Xms" + c.Heap, "-Xmx" + c.Heap,
			"-Djruby.logger.class=com.puppetlabs.jruby_utils.jruby.Slf4jLogger", "-Dlogappender=STDOUT",
			"-Djruby.lib=/usr/share/jruby/lib", "-XX:+CrashOnOutOfMemoryError",
			"-XX:ErrorFile=" + filepath.Join(c.Dir, "crash.log"),
			"-jar", puppetserverJar,
			"--config", filepath.Join(c.Dir, "conf.d"), "--bootstrap-config", filepath.Join(c.Dir, "services.d"),
		},
	})
	if err != nil {
		return nil, err
	}
	s := &Puppetserver{ca: ca, proc: proc, port: port}
	if err := s.proc.waitFor(ctx, s.running); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Puppetserver) running(ctx context.Context) bool {
	config, err := s.ca.Client("bench-probe")
	return err == nil && getOK(ctx, s.URL()+"/status/v1/simple", config, "running")
}

// Name implements [Target].
func (s *Puppetserver) Name() string { return "puppetserver" }

// Version implements [Target].
func (s *Puppetserver) Version(ctx context.Context) string {
	return packageVersion(ctx, puppetserverPackage)
}

// URL implements [Target].
func (s *Puppetserver) URL() string { return "https://127.0.0.1:" + strconv.Itoa(s.port) }

// Client implements [Target].
func (s *Puppetserver) Client(_ context.Context, certname string) (*tls.Config, error) {
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
	ca, err := NewCA(filepath.Join(c.Dir, "ssl"))
	if err != nil {
		return nil, err
	}
	cert, key, err := ca.IssueFiles(filepath.Join(c.Dir, "ssl"), "localhost")
	if err != nil {
		return nil, err
	}
	fill := strings.NewReplacer(
		"@DIR@", c.Dir, "@ENVIRONMENTS@", c.EnvironmentPath, "@MODULES@", c.BaseModulePath,
		"@JRUBIES@", strconv.Itoa(c.JRubies), "@PORT@", strconv.Itoa(port),
		"@CERT@", cert, "@KEY@", key, "@CA@", ca.CertPath, "@CRL@", ca.CRLPath)
	for name, text := range puppetserverFiles {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(fill.Replace(text)), 0o600); err != nil {
			return nil, err
		}
	}
	return ca, nil
}

// puppetserverFiles is the whole configuration. What is not said here keeps
// its default. Environments are cached for good, as every tuning guide asks;
// logs go where the package's go: one server log, one access log.
var puppetserverFiles = map[string]string{
	"puppet/puppet.conf": `[main]
certname = localhost
confdir = @DIR@/puppet
ssldir = @DIR@/ssl/puppet
vardir = @DIR@/var
logdir = @DIR@/log
rundir = @DIR@/run
codedir = @DIR@/code
environmentpath = @ENVIRONMENTS@
basemodulepath = @MODULES@
environment_timeout = unlimited
manage_internal_file_permissions = false
storeconfigs = false
reports = none
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
  ssl-host: 127.0.0.1
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
    { match-request: { path: "/puppet/v3/file_content", type: path, method: get }, allow: "*", sort-order: 500, name: "file content" }
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
