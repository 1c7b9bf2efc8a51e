package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/connection"
	"github.com/tutti-project/tutti/internal/agent/files"
	"github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/agent/process"
	"github.com/tutti-project/tutti/internal/agent/spool"
	"github.com/tutti-project/tutti/internal/wire"
)

// assemble makes the parts of an agent; end gives back what they hold.
func (d *daemon) assemble(ctx context.Context) (end func() error, err error) {
	policy, err := policyOf(d.Config)
	if err != nil {
		return nil, err
	}
	kept, err := spool.Open(filepath.Join(d.Data, "spool"), d.log)
	if err != nil {
		return nil, err
	}
	d.facts = d.newFacts()
	d.spool = afterRuns{kept, d.facts.wanted}
	if policy.Rules, err = d.newRules(ctx); err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	if err := d.openCatalogs(); err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	d.cache = files.New(files.Config{Dir: filepath.Join(d.Data, "cache"), Servers: d.primaries(), Client: d.filesClient(), Log: d.log})
	if d.supplied, err = d.newSupplied(); err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	modules, err := d.modules(ctx)
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	d.runner = process.New(process.Config{Watcher: []string{d.Binary, "errand", "watch"}})
	d.engine = orders.New(orders.Config{
		URI: d.uri, Spool: d.spool, Runner: d.runner, Modules: modules, Problems: action.Unusable(d.problems), SuppliesChanged: d.supplies.give, Policy: policy,
		Log: d.log, Audit: d.log.With(slog.Bool("audit", true)),
		MaxConcurrent: d.MaxConcurrent, MaxMessageBytes: int(d.MaxMessageBytes - envelopeBytes(d.MaxMessageBytes)), Retention: d.SpoolTTL,
	})
	if loaded, problems, _ := d.supplied.load(ctx, false); len(loaded)+len(problems) > 0 { // what is not here is fetched when a server is there
		d.engine.Supply(loaded, problems)
	}
	if d.schedule, err = d.newSchedule(); err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	life := context.WithoutCancel(ctx) // orders go on while the agent ends
	d.link, err = connection.New(connection.Config{
		URLs: d.brokers(), Version: wire.Version(d.PCPVersion), URI: d.uri, TLS: d.id.TLS, UserAgent: userAgent(d.Version),
		Receive: func(m wire.Message) { d.receive(life, m) }, Connected: d.connected, Explain: d.id.explain,
		ConnectTimeout: d.ConnectTimeout, PingInterval: d.PingInterval, ReturnAfter: d.ReturnAfter, MaxMessageBytes: d.MaxMessageBytes, Log: d.log,
	})
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	return kept.Close, nil
}

// envelopeBytes is the room that a message needs beside its data.
func envelopeBytes(most int64) int64 { return min(4<<10, most/2) }

// modules are what this node can do: the agent's own, and an administrator's executables.
func (d *daemon) modules(ctx context.Context) ([]orders.Module, error) {
	n := orders.Node{
		OS: runtime.GOOS, Shell: process.LoginShell(), PuppetRun: []string{d.Binary, "errand", "puppet"}, Cache: d.cache,
		Catalog: d.catalogs.Current, Released: d.released, Plugins: filepath.Join(d.Data, "catalogs", "plugins"),
		Settings: d.settingsFile(),
		Events:   d.eventsDir(), Shebang: shebang,
	}
	if len(d.primaries()) > 0 {
		n.Reports = d.reports.dir
	}
	if puppet, err := findPuppet(d.Puppet); err == nil {
		n.Puppet = puppet
	} else {
		n.Puppet = d.Puppet // it may be installed later
	}
	all := append(orders.Modules(n), orders.Catalog(d.told))
	own, err := d.builtins(n)
	if err != nil {
		return nil, err
	}
	all = append(all, own...)
	if d.ModulesDir == "" {
		return all, nil
	}
	cfg := modulesConfig(d.Binary, d.ModulesConfig, d.log)
	cfg.Dir, cfg.Facts = d.ModulesDir, func() jsontext.Value { return jsontext.Value(d.facts.keeping().Values) }
	more, problems, err := modules.Load(ctx, cfg)
	d.problems = problems
	return append(all, more...), err
}

// modulesConfig is how an administrator's executables are run by a binary of this program.
func modulesConfig(binary, dir string, log *slog.Logger) modules.Config {
	return modules.Config{ConfigDir: dir, Program: []string{binary, "errand", "choria"}, Log: log}
}

// filesClient fetches files, as this node.
func (d *daemon) filesClient() *http.Client {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		config, err := d.id.TLS()
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{Config: config.Clone()}).DialContext(ctx, network, address)
	}
	return &http.Client{Transport: &http.Transport{
		DialTLSContext: dial, TLSHandshakeTimeout: d.ConnectTimeout, ResponseHeaderTimeout: fileTime, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 2,
	}}
}

// fileTime is how long a server may take until a file begins to come.
const fileTime = time.Minute
