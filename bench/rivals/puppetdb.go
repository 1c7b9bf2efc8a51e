package rivals

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

const (
	puppetdbJar     = "/usr/share/puppetdb/puppetdb.jar"
	puppetdbPackage = "puppetdb"
)

// PuppetDB is Debian's PuppetDB on a PostgreSQL of its own. It listens in clear
// text on loopback, which spares it the cost of TLS.
type PuppetDB struct {
	postgres *Postgres
	proc     *process
	port     int
	conn     *load.Conn // of the harness's own questions
}

// PuppetDBConfig says how PuppetDB and its PostgreSQL are set up.
type PuppetDBConfig struct {
	Heap     string   // of Java, such as 192m
	Threads  int      // that process commands; 0: PuppetDB's default, half of the cores
	Keep     bool     // never let data expire
	Postgres []string // PostgreSQL's settings
	Java     []string // flags of the virtual machine
}

// StartPuppetDB starts both as Debian sets them up and waits until PuppetDB says
// that it runs.
func StartPuppetDB(ctx context.Context, dir, heap string) (*PuppetDB, error) {
	return StartPuppetDBWith(ctx, dir, PuppetDBConfig{Heap: heap})
}

// StartPuppetDBWith starts both, on the data of an earlier run where there is any.
func StartPuppetDBWith(ctx context.Context, dir string, config PuppetDBConfig) (_ *PuppetDB, err error) {
	java, err := need("java", "default-jre-headless "+puppetdbPackage)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(puppetdbJar); err != nil {
		return nil, &MissingError{Program: "PuppetDB", Install: "apt-get install --no-install-recommends " + puppetdbPackage}
	}
	p := &PuppetDB{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop())
		}
	}()
	if p.postgres, err = StartPostgres(ctx, dir, config.Postgres...); err != nil {
		return nil, err
	}
	if err := p.makeDatabase(ctx); err != nil {
		return nil, err
	}
	if p.port, err = FreePort(ctx); err != nil {
		return nil, err
	}
	if err := writePuppetDB(dir, p.port, p.postgres.port, config); err != nil {
		return nil, fmt.Errorf("configure puppetdb: %w", err)
	}
	p.proc, err = start(ctx, command{
		path: java, dir: dir, log: filepath.Join(dir, "puppetdb.log"),
		args: append(slices.Clone(config.Java),
			"-Xmx"+config.Heap, "-Djava.security.egd=/dev/urandom", "-cp", puppetdbJar, "clojure.main", "-m", "puppetlabs.puppetdb.core", "services",
			"--config", filepath.Join(dir, "conf.d"), "--bootstrap-config", filepath.Join(dir, "bootstrap.cfg"),
		),
	})
	if err != nil {
		return nil, err
	}
	if p.conn, err = load.NewConn(p.URL(), nil); err != nil {
		return nil, err
	}
	return p, p.proc.waitFor(ctx, p.running)
}

// makeDatabase makes PuppetDB's database, unless it is there already.
func (p *PuppetDB) makeDatabase(ctx context.Context) error {
	if p.postgres.sql(ctx, "puppetdb", "select 1") == nil {
		return nil
	}
	for _, step := range []struct{ database, statement string }{
		{"postgres", "create role puppetdb login password 'puppetdb'"},
		{"postgres", "create database puppetdb owner puppetdb"},
		{"puppetdb", "create extension pg_trgm"},
	} {
		if err := p.postgres.sql(ctx, step.database, step.statement); err != nil {
			return err
		}
	}
	return nil
}

func (p *PuppetDB) running(ctx context.Context) bool {
	return getOK(ctx, p.URL()+"/status/v1/services/puppetdb-status", nil, `"state":"running"`)
}

// Name implements [Target].
func (p *PuppetDB) Name() string { return "puppetdb" }

// Version implements [Target].
func (p *PuppetDB) Version(ctx context.Context) string {
	return packageVersion(ctx, puppetdbPackage) + " on PostgreSQL " + p.postgres.Version(ctx)
}

// URL implements [Target].
func (p *PuppetDB) URL() string { return "http://127.0.0.1:" + strconv.Itoa(p.port) }

// Client implements [Target]: clear text.
func (p *PuppetDB) Client(context.Context, string) (*tls.Config, error) { return nil, nil } //nolint:nilnil // nil means clear text

// Usage implements [Target]: PuppetDB and its PostgreSQL together.
func (p *PuppetDB) Usage() (measure.Usage, error) {
	return measure.Tree(p.proc.pid(), p.postgres.proc.pid())
}

// Parts gives the usage of PuppetDB and of PostgreSQL apart.
func (p *PuppetDB) Parts() (puppetdb, postgres measure.Usage, err error) {
	puppetdb, err1 := p.proc.usage()
	postgres, err2 := p.postgres.Usage()
	return puppetdb, postgres, errors.Join(err1, err2)
}

// Stop implements [Target].
func (p *PuppetDB) Stop() error {
	var errs []error
	if p.conn != nil {
		p.conn.Close()
	}
	if p.proc != nil {
		errs = append(errs, p.proc.stop(syscall.SIGTERM))
	}
	if p.postgres != nil && p.postgres.proc != nil {
		errs = append(errs, p.postgres.Stop())
	}
	return errors.Join(errs...)
}

// Processed is how many commands PuppetDB has finished since its start, and how
// many it gave up.
func (p *PuppetDB) Processed(ctx context.Context) (processed, discarded int, err error) {
	if processed, err = p.meter(ctx, "global.processed"); err != nil {
		return 0, 0, err
	}
	discarded, err = p.meter(ctx, "global.discarded")
	return processed, discarded, err
}

func (p *PuppetDB) meter(ctx context.Context, name string) (int, error) {
	request := load.Request{Path: "/metrics/v2/read/puppetlabs.puppetdb.mq:name=" + name, Header: http.Header{"Accept": {"application/json"}}}
	response, err := p.conn.Fetch(ctx, request)
	if err := load.Expect(request, response, err, http.StatusOK); err != nil {
		return 0, err
	}
	var answer struct {
		Value struct{ Count int } `json:"value"`
	}
	if err := json.Unmarshal(response.Body, &answer); err != nil {
		return 0, fmt.Errorf("read metric %s: %w", name, err)
	}
	return answer.Value.Count, nil
}

// Postgres is the cluster that it keeps its records in.
func (p *PuppetDB) Postgres() *Postgres { return p.postgres }

// Count asks how many rows an entity has: nodes, reports, factsets.
func (p *PuppetDB) Count(ctx context.Context, entity string) (int, error) {
	query := `["extract",[["function","count"]]]`
	request := load.Request{Path: "/pdb/query/v4/" + entity + "?query=" + escape(query), Header: http.Header{"Accept": {"application/json"}}}
	response, err := p.conn.Fetch(ctx, request)
	if err := load.Expect(request, response, err, http.StatusOK); err != nil {
		return 0, err
	}
	var rows []struct{ Count int }
	if err := json.Unmarshal(response.Body, &rows); err != nil || len(rows) != 1 {
		return 0, fmt.Errorf("count %s: %w: %s", entity, err, response.Body)
	}
	return rows[0].Count, nil
}

// Drain waits until n commands in all were processed.
func (p *PuppetDB) Drain(ctx context.Context, n int) error {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		processed, discarded, err := p.Processed(ctx)
		if err != nil {
			return err
		}
		if discarded > 0 {
			return fmt.Errorf("puppetdb discarded %d commands:\n%s", discarded, p.proc.tail())
		}
		if processed >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.proc.done:
			return fmt.Errorf("puppetdb ended:\n%s", p.proc.tail())
		case <-poll.C:
		}
	}
}

// Command sends one command and returns when it is accepted, which is not yet
// processed.
func Command(ctx context.Context, conn *load.Conn, name string, version int, certname string, payload []byte) error {
	request := load.Request{
		Method: http.MethodPost, Path: fmt.Sprintf("/pdb/cmd/v1?command=%s&version=%d&certname=%s", name, version, certname),
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}, Body: payload,
	}
	response, err := conn.Fetch(ctx, request)
	return load.Expect(request, response, err, http.StatusOK)
}

func escape(query string) string {
	return strings.NewReplacer(`"`, "%22", "[", "%5B", "]", "%5D", ",", "%2C").Replace(query)
}

func writePuppetDB(dir string, port, postgresPort int, config PuppetDBConfig) error {
	for _, sub := range []string{"conf.d", "var", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o750); err != nil {
			return err
		}
	}
	fill := strings.NewReplacer("@DIR@", dir, "@PORT@", strconv.Itoa(port), "@POSTGRES@", strconv.Itoa(postgresPort),
		"@THREADS@", config.threads(), "@EXPIRY@", config.expiry())
	for name, text := range puppetdbFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fill.Replace(text)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c PuppetDBConfig) threads() string {
	if c.Threads == 0 {
		return ""
	}
	return "[command-processing]\nthreads = " + strconv.Itoa(c.Threads) + "\n"
}

// expiry switches garbage collection off for data that is to be kept.
func (c PuppetDBConfig) expiry() string {
	if !c.Keep {
		return ""
	}
	return "gc-interval = 0\nnode-ttl = 0s\nnode-purge-ttl = 20000d\nreport-ttl = 20000d\nresource-events-ttl = 20000d\n"
}

// puppetdbFiles is the package's configuration with other places and ports;
// threads and everything else are PuppetDB's defaults. Metrics are open, since
// nobody else can reach them.
var puppetdbFiles = map[string]string{
	"conf.d/config.ini": `[global]
vardir = @DIR@/var
logging-config = @DIR@/logback.xml
[puppetdb]
disable-update-checking = true
@THREADS@`,
	"conf.d/database.ini": `[database]
subname = //127.0.0.1:@POSTGRES@/puppetdb
username = puppetdb
password = puppetdb
@EXPIRY@`,
	"conf.d/jetty.ini": `[jetty]
host = 127.0.0.1
port = @PORT@
access-log-config = @DIR@/request-logging.xml
`,
	"conf.d/auth.conf": `authorization: {
  version: 1
  rules: [
    { match-request: { path: "/", type: path }, allow-unauthenticated: true, sort-order: 1, name: "all" }
  ]
}
`,
	"bootstrap.cfg": `puppetlabs.trapperkeeper.services.webserver.jetty9-service/jetty9-service
puppetlabs.trapperkeeper.services.webrouting.webrouting-service/webrouting-service
puppetlabs.trapperkeeper.services.authorization.authorization-service/authorization-service
puppetlabs.trapperkeeper.services.metrics.metrics-service/metrics-webservice
puppetlabs.trapperkeeper.services.status.status-service/status-service
puppetlabs.trapperkeeper.services.scheduler.scheduler-service/scheduler-service
puppetlabs.puppetdb.cli.services/puppetdb-service
puppetlabs.puppetdb.command/command-service
puppetlabs.puppetdb.pdb-routing/maint-mode-service
puppetlabs.puppetdb.pdb-routing/pdb-routing-service
puppetlabs.puppetdb.config/config-service
puppetlabs.puppetdb.dashboard/dashboard-redirect-service
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
    <encoder><pattern>%h %l %u [%t] "%r" %s %b %D</pattern></encoder>
  </appender>
  <appender-ref ref="FILE"/>
</configuration>
`,
}
