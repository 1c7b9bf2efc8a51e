package e2e_test

import (
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// A node that was never seen before gets its certificate, converges, and says so;
// the second run changes nothing; drift is mended and called by its name.
func TestAgentConverges(t *testing.T) {
	begin(t)
	a := newAgent(t, theHouse(t), "converges.test", "story=basic")

	out := a.run(t, 2)
	contains(t, out, "Downloaded certificate for "+a.name, "Caching catalog for "+a.name, "Applied catalog")
	same(t, "files", map[string]string{
		"content.txt": "hello from hiera\n", "template.txt": "I am " + a.name + "\n", "source.txt": "the source a\n",
	}, a.tree(t, "basic"))

	a.run(t, 0)
	if err := os.WriteFile(filepath.Join(a.scratch, "basic/content.txt"), []byte("drift\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.run(t, 2)
	same(t, "mended file", "hello from hiera\n", a.read(t, "basic/content.txt"))

	var statuses []string
	for _, r := range a.reports(t) {
		statuses = append(statuses, r.Status)
		if !r.Completed || r.Noop || r.Environment != "production" || r.CatalogUUID == "" {
			t.Errorf("report %+v", r)
		}
	}
	same(t, "runs, newest first", []string{"changed", "unchanged", "changed"}, statuses)
	if report := a.lastReport(t); !report.Corrective || report.Counts.Changed != 1 {
		t.Errorf("the mended file is no corrective change: %+v", report.Counts)
	}
	checkInventory(t, a)
}

// checkInventory asks for what the server knows of a node that converged.
func checkInventory(t *testing.T, a *agent) {
	t.Helper()
	node := decode[api.Node](t, a.server, "node", "show", a.name)
	if node.Status != "changed" || !node.Corrective || node.FactsAt == nil || node.CatalogAt == nil || node.Environment != "production" {
		t.Errorf("node %+v", node)
	}
	contains(t, a.server.tutti(t, "node", "list"), a.name)
	contains(t, a.server.tutti(t, "node", "facts", a.name, "scratch"), a.scratch)
	catalog := decode[api.Catalog](t, a.server, "catalog", "show", a.name)
	names := map[string]bool{}
	for _, r := range catalog.Resources {
		names[r.Type+"["+r.Title+"]"] = true
	}
	for _, want := range []string{"Class[Story::Basic]", "File[" + a.scratch + "/basic/source.txt]", "Stage[main]"} {
		if !names[want] {
			t.Errorf("the stored catalog has no %s", want)
		}
	}
	contains(t, a.server.tutti(t, "report", "show", a.reports(t)[0].ID[:12]), a.name, "content.txt", "corrective")
}

// --noop shows what would happen, writes nothing, and the report says what is pending.
func TestNoop(t *testing.T) {
	begin(t)
	a := newAgent(t, theHouse(t), "noop.test", "story=basic")
	out := a.run(t, 0, "--noop") // as Puppet Server
	contains(t, out, installed().noop, "Would have triggered 'refresh' from 4 events")
	same(t, "files", map[string]string{}, a.tree(t, "."))
	if cached, _ := filepath.Glob(filepath.Join(a.home, "vardir/client_data/catalog/*")); len(cached) != 0 {
		t.Errorf("a noop run cached its catalog: %v", cached)
	}
	r := a.lastReport(t)
	if !r.Noop || !r.NoopPending || r.Status != "unchanged" || r.Counts.Noop != 4 {
		t.Errorf("report: noop %v, pending %v, status %s, counts %+v", r.Noop, r.NoopPending, r.Status, r.Counts)
	}
	for _, args := range [][]string{
		{"report", "list", "--node", a.name}, {"report", "show", r.ID[:12]}, {"node", "show", a.name}, {"node", "list", "--where", `certname = "noop.test"`},
	} {
		contains(t, a.server.tutti(t, args...), "unchanged, 4 would change")
	}
	eventually(t, patience, "the events of the run are made from its report", func() bool {
		return strings.Contains(a.server.tutti(t, "event", "list", "--node", a.name, "--kind", "end"), "run ends, 4 would change (")
	})
}

// --use_cached_catalog applies the catalog of the run before, even when the code has changed.
func TestUseCachedCatalog(t *testing.T) {
	begin(t)
	a := newAgent(t, theHouse(t), "cached.test", "story=basic")
	a.run(t, 2)
	first := a.lastReport(t)
	out := a.run(t, 0, "--use_cached_catalog", "--job-id", "42")
	contains(t, out, "Using cached catalog from environment 'production'") // as Puppet Server
	r := a.lastReport(t)
	if r.CachedCatalog != "explicitly_requested" || r.CatalogUUID != first.CatalogUUID || r.JobID != "42" || r.Version != first.Version {
		t.Errorf("report of the cached run: %+v", r)
	}
	if r.TransactionUUID == first.TransactionUUID {
		t.Error("two runs have one transaction")
	}
}

// The code of an environment breaks. A stock agent that pxp-agent runs tides over with the catalog that it has, and both say that all is
// well. The server knows better: it could not compile the node's catalog, and the report says that the cached one was applied.
func TestCachedCatalogAfterFailure(t *testing.T) {
	begin(t)
	s := theHouse(t)
	control := t.TempDir()
	deploy := func(web string) {
		t.Helper()
		write(t, filepath.Join(control, "modules/web/manifests/init.pp"), web)
		s.tutti(t, "code", "deploy", "--no-check", "tided", control)
	}
	write(t, filepath.Join(control, "manifests/site.pp"), "include web\n")
	deploy("class web {\n  file { \"${facts['scratch']}/page\": content => \"good\\n\" }\n}\n")
	a := newAgent(t, s, "tided.test")
	a.run(t, 2, "--environment", "tided")
	deploy("class web {\n  fail('the powder keg blew up')\n}\n")
	write(t, filepath.Join(a.scratch, "page"), "drift\n")

	pxpAgent := a.pxpAgent(t)
	job := decode[api.Job](t, s, "run", a.name, "--environment", "tided", "--no-wait")
	r := pxpAgent.runsPuppet(a)
	if r.code != 0 { // as Puppet Server: without -t the cache masks the error
		t.Errorf("exit code %d\n%s", r.code, r.text())
	}
	contains(t, r.text(), "the powder keg blew up", "Using cached catalog")
	same(t, "page", "good\n", a.read(t, "page"))
	if report := a.lastReport(t); report.CachedCatalog != "on_failure" || report.Status != "changed" {
		t.Errorf("the report says %s, cached catalog status %q", report.Status, report.CachedCatalog)
	}
	watched := s.try(t, "job", "watch", job.ID)
	if watched.code != 4 {
		t.Errorf("a run whose catalog does not compile: exit code %d\n%s", watched.code, watched.text())
	}
	const says = "its catalog does not compile (modules/web/manifests/init.pp:2: "
	contains(t, watched.text(), a.name+": failed: "+says, "the powder keg blew up", "; it applied the one it had")
	contains(t, s.tutti(t, "job", "show", job.ID), says, "the powder keg blew up", "; it applied the one it had; tutti report show ")
	contains(t, s.tutti(t, "node", "list", "--where", fmt.Sprintf("certname = %q", a.name)), "does not compile, ", "cached catalog")
	contains(t, s.tutti(t, "node", "show", a.name), "cached catalog", "Compile error", "modules/web/manifests/init.pp:2: ", "the powder keg blew up")
	contains(t, s.tutti(t, "report", "list", "--node", a.name), "with the cached catalog: it was given no other")
}

// pxpAgent connects as the pxp-agent of a node with a stock agent does: with Puppet's own certificate.
func (a *agent) pxpAgent(t *testing.T) *pcp {
	t.Helper()
	ssl := filepath.Join(a.home, "ssldir")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(ssl, "certs", a.name+".pem"), filepath.Join(ssl, "private_keys", a.name+".pem"))
	if err != nil {
		t.Fatal(err)
	}
	n := &node{server: a.server, name: a.name, client: newHTTPClient(t, &tls.Config{
		RootCAs: a.server.roots(t), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
	})}
	return n.pcp(t, "", "/pcp2/agent", wire.V2).associate()
}

// runsPuppet takes the order of a Puppet run and carries it out as pxp-module-puppet 1.15 does: its answer is what the report says of
// resources, not where the catalog came from.
func (p *pcp) runsPuppet(a *agent) result {
	p.t.Helper()
	m := p.receive()
	asked, err := pxp.ParseRequest(m.Data)
	if err != nil || m.Type != wire.NonBlockingRequest || asked.Module != pxp.Puppet {
		p.t.Fatalf("ordered was %s %s, %v", m.Type, m.Data, err)
	}
	params, err := pxp.ParsePuppet(asked.Params)
	if err != nil {
		p.t.Fatal(err)
	}
	p.send(wire.Message{Type: wire.ProvisionalResponse, Target: m.Sender, Data: pxp.Data(pxp.Provisional{Transaction: asked.Transaction})})
	r := a.puppet(p.t, slices.Concat([]string{"agent"}, params.Flags, []string{"--onetime", "--no-daemonize", "--verbose", "--job-id", params.Job})...)
	report := a.lastReport(p.t)
	p.send(wire.Message{Type: wire.NonBlockingResponse, Target: m.Sender, Data: pxp.Data(pxp.Response{
		Transaction: asked.Transaction, Results: pxp.Data(pxp.PuppetResults{
			Time: report.StartedAt.Format(time.RFC3339Nano), TransactionUUID: report.TransactionUUID, Environment: report.Environment, Status: report.Status,
			Metrics:  map[string]int{"total": report.Counts.Resources, "changed": report.Counts.Changed, "failed": report.Counts.Failed},
			ExitCode: r.code, Version: 1,
		}),
	})})
	return r
}

// --environment brings the node to another line of code.
func TestOtherEnvironment(t *testing.T) {
	begin(t)
	a := newAgent(t, theHouse(t), "other.test")
	out := a.run(t, 2, "--environment", "other")
	contains(t, out, "Using environment 'other'")
	same(t, "file", "other of other\n", a.read(t, "environment.txt")) // as Puppet Server
	same(t, "environment", "other", a.lastReport(t).Environment)
	same(t, "environment", "other", decode[api.Node](t, a.server, "node", "show", a.name).Environment)
}

// What pluginsync brings works in the same run: a fact, an external fact, a type with its provider.
func TestPluginsync(t *testing.T) {
	begin(t, 30)
	for _, c := range []struct {
		name    string
		args    []string
		locales bool
	}{
		{"without-locales", nil, false},
		{"with-locales", []string{"--no-disable_i18n"}, true},
		{"with-msgpack", []string{"--preferred_serialization_format=msgpack"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := exec.CommandContext(t.Context(), "ruby", "-rmsgpack", "-e", "exit").Run(); err != nil {
				t.Fatalf("agents cannot speak MessagePack here: make test-deps (%v)", err)
			}
			a := newAgent(t, theHouse(t), c.name+".test", "story=plugins")
			a.csrAttributes(t, "extension_requests:\n  pp_zone: z\n  pp_role: r\n  1.3.6.1.4.1.34380.1.2.7: own\n  pp_application: a\n")
			a.run(t, 2, c.args...)
			same(t, "files", map[string]string{
				"facts.txt": "a custom fact and an external fact\n",
				"line.txt":  "written by a synced provider\n",
				"order.txt": installed().facts,
				"trusted.txt": "pp_zone=z pp_role=r 1.3.6.1.4.1.34380.1.2.7=own pp_application=a\n" +
					`{"pp_zone":"z","pp_role":"r","1.3.6.1.4.1.34380.1.2.7":"own","pp_application":"a"}` + "\n",
			}, a.tree(t, "."))
			_, err := os.Stat(filepath.Join(a.home, "vardir/locales/de/tutti-story.po"))
			if got := err == nil; got != c.locales {
				t.Errorf("locales synced: %v, want %v", got, c.locales)
			}
			for _, unwanted := range []string{"config.yaml", "tutti-story.pot"} { // the agent asks to leave them out
				if _, err := os.Stat(filepath.Join(a.home, "vardir/locales", unwanted)); err == nil {
					t.Errorf("%s was synced", unwanted)
				}
			}
			facts := decode[map[string]any](t, a.server, "node", "facts", a.name)
			same(t, "stored fact", any("a custom fact"), facts["story_custom"])
		})
	}
}

// `puppet facts upload` stores facts without a run.
func TestFactsUpload(t *testing.T) {
	begin(t)
	a := newAgent(t, theHouse(t), "upload.test", "story=basic", "colour=green")
	if r := a.puppet(t, "ssl", "bootstrap"); r.code != 0 {
		t.Fatalf("ssl bootstrap: %d\n%s", r.code, r.text())
	}
	r := a.puppet(t, "facts", "upload")
	if r.code != 0 {
		t.Fatalf("facts upload: %d\n%s", r.code, r.text())
	}
	contains(t, r.text(), "Uploading facts for '"+a.name+"'")
	same(t, "stored fact", "green", decode[string](t, a.server, "node", "facts", a.name, "colour"))
	node := decode[api.Node](t, a.server, "node", "show", a.name)
	if node.ReportAt != nil { // a catalog may have been compiled ahead
		t.Errorf("an upload of facts made a report: %+v", node)
	}
}

// A source that does not exist fails its own resource and no other (as Puppet Server
// without static catalogs).
func TestMissingSource(t *testing.T) {
	begin(t)
	s := theHouse(t)
	a := newAgent(t, s, "missing.test", "story=missing")
	out := a.run(t, 6)
	contains(t, out, "nowhere.txt", "Could not retrieve information from environment production source(s) puppet:///modules/story/nowhere.txt")
	same(t, "file", "still here\n", a.read(t, "neighbour.txt"))
	contains(t, s.tutti(t, "report", "list", "--status", "failed"), a.name)
}
