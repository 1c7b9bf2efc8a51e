package e2e_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
)

// A node with Puppet 8 lives a whole life in one story. Every step of it has a story of its own that `make test-puppet8` tells with Puppet 8.
func TestAnAgentOfPuppet8(t *testing.T) {
	begin(t, 100)
	s := startServer(t, "--autosign", "all", "--compile-patience", "2s")
	s.deploy(t, "production", "other")
	a := debian13.agent(t, s, "eight.test", "bucket_server=localhost", "bucket_port="+s.port())
	stage := func(story string) { a.env = append(a.env, "FACTER_story="+story) }

	stage("slow") // it enrols; its first catalog takes longer than the server waits
	contains(t, a.run(t, 2), "Downloaded certificate for "+a.name, "Sleeping for")
	s.logged(t, "/puppet/v3/catalog/"+a.name, "status=503")
	same(t, "file", "worth the wait\n", a.read(t, "slow.txt"))
	same(t, "version", any("8."), any(decode[string](t, s, "node", "facts", a.name, "puppetversion")[:2]))

	stage("plugins")
	a.run(t, 2)
	same(t, "facts.txt", "a custom fact and an external fact\n", a.read(t, "facts.txt"))
	same(t, "line.txt", "written by a synced provider\n", a.read(t, "line.txt"))

	stage("basic") // content, template, a source
	noop := a.run(t, 0, "--noop")
	contains(t, noop, debian13.noop)
	if r := a.lastReport(t); !r.Noop || !r.NoopPending || r.Counts.Noop != 4 {
		t.Errorf("report: noop %v, pending %v, counts %+v", r.Noop, r.NoopPending, r.Counts)
	}
	a.run(t, 2)
	same(t, "basic", map[string]string{
		"content.txt": "hello from hiera\n", "template.txt": "I am " + a.name + "\n", "source.txt": "the source a\n",
	}, a.tree(t, "basic"))

	contains(t, a.run(t, 2, "--environment", "other"), "Using environment 'other'")
	same(t, "file", "other of other\n", a.read(t, "environment.txt"))

	stage("bucket")
	write(t, filepath.Join(a.scratch, "precious.txt"), "old\n")
	a.ordered(t)
	same(t, "file", "new\n", a.read(t, "precious.txt"))
	contains(t, a.puppet(t, "filebucket", "get", sha256Hex([]byte("old\n"))).text(), "old")

	a.env = append(a.env, "FACTER_colour=green")
	if r := a.puppet(t, "facts", "upload"); r.code != 0 {
		t.Errorf("facts upload: %d\n%s", r.code, r.text())
	}
	same(t, "stored fact", "green", decode[string](t, s, "node", "facts", a.name, "colour"))

	// What was given last is held; then the code breaks, and the agent tides over with its cached catalog.
	s.tutti(t, "catalog", "mode", a.name, "released")
	broken := t.TempDir()
	write(t, filepath.Join(broken, "manifests/site.pp"), "fail('the powder keg blew up')\n")
	s.tutti(t, "code", "deploy", "--no-check", "production", broken)
	a.run(t, 0)
	s.tutti(t, "catalog", "mode", a.name, "live")
	write(t, filepath.Join(a.scratch, "precious.txt"), "drift\n")
	contains(t, a.puppet(t, "agent", "--onetime", "--no-daemonize", "--verbose").text(), "the powder keg blew up", "Using cached catalog")
	same(t, "file", "new\n", a.read(t, "precious.txt"))
	if report := a.lastReport(t); report.CachedCatalog != "on_failure" || report.Status != "changed" {
		t.Errorf("the report says %s, cached catalog status %q", report.Status, report.CachedCatalog)
	}
}

// ordered lets `tutti agent` run the node's Puppet by a job, whose events are seen.
func (a *agent) ordered(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	a.server.tutti(t, "agent", "join", a.server.url, "--dir", dir, "--use-puppet-certificates", "--puppet-ssldir", filepath.Join(a.home, "ssldir"),
		"--certname", a.name)
	d := newDaemon(t, a.name, dir, "--puppet", a.wrapper(t, dir))
	d.start(t)
	d.connectedTo(t, "localhost:"+a.server.port())
	contains(t, a.server.tutti(t, "run", a.name, "--yes"), a.name+": changed")
	events := decode[api.List[api.Event]](t, a.server, "event", "list", "--node", a.name, "--job", "1").Items
	if told := len(events) > 0 && !events[0].Reported; !told {
		t.Errorf("the run was not streamed: %+v", events)
	}
}

// An agent of Puppet 8 sends no legacy facts, unless it is told to: code that reads them finds nothing there, and it is an error where
// unknown variables are.
func TestLegacyFacts(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s", "--engines", "puppet8:"+puppet8Engine(t))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"),
		`file { "${facts['scratch']}/families": content => "${::osfamily} ${facts['osfamily']} ${facts['os']['family']}\n" }`)
	s.tutti(t, "code", "deploy", "--no-check", "production", dir)
	seven, eight := machines.agent(t, s, "seven.test"), debian13.agent(t, s, "eight.test")
	seven.run(t, 2)
	same(t, "families of Puppet 7", "Debian Debian Debian\n", seven.read(t, "families"))
	eight.run(t, 2)
	same(t, "families of Puppet 8", "  Debian\n", eight.read(t, "families"))
	eight.run(t, 2, "--include_legacy_facts")
	same(t, "families of Puppet 8 with legacy facts", "Debian Debian Debian\n", eight.read(t, "families"))
	s.tutti(t, "code", "deploy", "--no-check", "compiled_by_8", dir, "--engine", "puppet8")
	contains(t, eight.run(t, 1, "--environment", "compiled_by_8"), "Evaluation Error: Unknown variable: '::osfamily'")
	seven.run(t, 0, "--environment", "compiled_by_8")
}

// Where unknown variables are errors, such code does not compile for agents of Puppet 8.
func TestLegacyFactsWhereVariablesAreStrict(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s", "--puppet-strict-variables")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), `file { "${facts['scratch']}/family": content => "${::osfamily}\n" }`)
	s.tutti(t, "code", "deploy", "--no-check", "production", dir)
	eight := debian13.agent(t, s, "eight.test")
	contains(t, eight.run(t, 1), "Evaluation Error: Unknown variable: '::osfamily'")
	eight.run(t, 2, "--include_legacy_facts")
	same(t, "family", "Debian\n", eight.read(t, "family"))
}

// Each agent is served by each engine: what the agent says it is decides whether it is told to come back, what the engine is decides what is compiled, and
// neither asks for the other. An agent that is newer than both engines is served as the newest that is known, with what it says beyond that passed over.
func TestAgentsAndEngines(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--compile-patience", "200ms", "--max-load", "0", "--reuse-check", "0", "--engines", "puppet8:"+puppet8Engine(t))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "modules/slow/lib/puppet/functions/slow/version.rb"),
		"Puppet::Functions.create_function(:'slow::version') do\n  def version\n    sleep 1\n    Puppet.version\n  end\nend\n")
	write(t, filepath.Join(dir, "modules/slow/files/a"), "the source a\n")
	write(t, filepath.Join(dir, "manifests/site.pp"), `$by = slow::version()
file { '/said': content => "by ${by} for ${facts['puppetversion']}" }
file { '/copied': source => 'puppet:///modules/slow/a' }
`)
	s.tutti(t, "code", "deploy", "seven", dir)
	s.tutti(t, "code", "deploy", "eight", dir, "--engine", "puppet8")
	const rich = "application/vnd.puppet.rich+json, application/json"
	agents := map[string]struct {
		accept, checksums, form string
		report                  map[string]any // beyond what is known
	}{
		"7.23.0":               {accept: rich + ", application/vnd.puppet.rich+msgpack, text/pson"},
		"7.23.0, PSON only":    {accept: "text/pson"},
		"8.10.0":               {accept: rich},
		"8.10.0, SHA-512 only": {accept: rich, checksums: "sha512"},
		"9.0.0": {
			"application/vnd.puppet.richest+json, " + rich, "sha3256.sha256", "&novelty=yes",
			map[string]any{"report_format": 14, "novelty": map[string]any{"a": []int{1}}},
		},
	}
	page, err := os.ReadFile(filepath.Join(docs, "puppet-agents.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| ([0-9][^|]*) \\| Puppet (7|8) \\| (kept on the line|told to come back) \\| `(.+)` \\| (with SHA-256|none: it asks for each) \\|$").
		FindAllStringSubmatch(string(page), -1)
	if len(rows) != 2*len(agents) {
		t.Fatalf("the page has %d rows, not one for each of %d agents and each engine", len(rows), len(agents))
	}
	for _, row := range rows {
		name, engine, comesBack, format, static := row[1], row[2]+".", row[3] == "told to come back", row[4], row[5] == "with SHA-256"
		agent, known := agents[name]
		if !known {
			t.Fatalf("the page has an agent %q", name)
		}
		version, _, _ := strings.Cut(name, ",")
		environment := map[string]string{"7.": "seven", "8.": "eight"}[engine]
		t.Run(name+" in "+environment, func(t *testing.T) {
			t.Parallel()
			n := enrol(t, s, "agent-"+strings.NewReplacer(".", "-", ", ", "-", " ", "-").Replace(strings.ToLower(name))+"-"+environment+".test")
			n.version = version
			headers := map[string]string{
				"Accept": agent.accept, "User-Agent": "Puppet/" + version + " Ruby/3.9.1-p0 (x86_64-linux)", "Content-Type": "application/x-www-form-urlencoded",
			}
			facts := map[string]any{"clientversion": version, "puppetversion": version, "novelty": map[string]any{"deep": []any{1, nil}}}
			form := append(catalogForm(n.name, environment, facts), agent.form...)
			if agent.checksums != "" {
				form = bytes.Replace(form, []byte("checksum_type=sha256.sha384.sha512.sha224.md5"), []byte("checksum_type="+agent.checksums), 1)
			}
			told := 0
			var got answer
			for got.status != http.StatusOK {
				var err error
				if got, err = n.doHeaders(http.MethodPost, "/puppet/v3/catalog/"+n.name+"?environment="+environment, headers, form); err != nil {
					t.Fatal(err)
				}
				if got.status == http.StatusServiceUnavailable && got.header.Get("Retry-After") != "" && told < 60 {
					told++
					<-time.After(time.Second)
				} else if got.status != http.StatusOK {
					t.Fatalf("%d %s", got.status, got.body)
				}
			}
			if (told > 0) != comesBack {
				t.Errorf("it was told %d times to come back, want some: %v", told, comesBack)
			}
			same(t, "format", format, strings.TrimSuffix(got.header.Get("Content-Type"), ";charset=utf-8"))
			if !regexp.MustCompile(`"content":"by ` + regexp.QuoteMeta(engine) + `[0-9.]+ for ` + regexp.QuoteMeta(version) + `"`).MatchString(got.body) {
				t.Errorf("the engine is not Puppet %s, or the agent another one:\n%s", engine, got.body)
			}
			if strings.Contains(got.body, `"metadata":{"/copied"`) != static || strings.Contains(got.body, `{sha256}`) != static {
				t.Errorf("metadata of files in it, want it: %v\n%s", static, got.body)
			}
			source := n.must(t, http.MethodGet, "/puppet/v3/file_content/modules/slow/a?environment="+environment, "", nil)
			same(t, "source", "the source a\n", source.body)
			var report map[string]any
			if err := json.Unmarshal(reportJSON(n.name, newUUID()), &report); err != nil {
				t.Fatal(err)
			}
			report["puppet_version"], report["environment"] = version, environment
			maps.Copy(report, agent.report)
			text, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			if put := n.must(t, http.MethodPut, "/puppet/v3/report/"+n.name+"?environment="+environment, "application/json", text); put.status != http.StatusOK {
				t.Fatalf("its report: %d %s", put.status, put.body)
			}
			contains(t, s.tutti(t, "query", `reports[puppet_version]{ certname = "`+n.name+`" }`, "-o", "json"), `"`+version+`"`)
			same(t, "version", version, decode[string](t, s, "node", "facts", n.name, "puppetversion"))
		})
	}
}
