package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	agentpkg "github.com/tutti-project/tutti/internal/agent"
)

// rolesCode is code of two roles that have no file in common but site.pp.
func rolesCode(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for path, text := range map[string]string{
		"manifests/site.pp":             "include \"${facts['story']}\"\n",
		"modules/web/manifests/init.pp": "class web {\n  file { \"${facts['scratch']}/page\": source => 'puppet:///modules/web/page.txt' }\n}\n",
		"modules/web/files/page.txt":    "first page\n",
		"modules/db/manifests/init.pp":  "class db {\n  file { \"${facts['scratch']}/table\": content => \"first table\\n\" }\n}\n",
	} {
		write(t, filepath.Join(dir, path), text)
	}
	return dir
}

// kept waits for a run from a catalog that the node keeps.
func (n scheduled) kept(t *testing.T) agentpkg.Status {
	t.Helper()
	return n.ran(t, "runs from what it keeps", func(s agentpkg.Status) bool {
		return s.Runs.Last.Catalog != "" && s.Runs.Last.Catalog == s.Catalog.Digest
	})
}

// codeStatus waits for how nodes stand to production's code.
func (s *server) codeStatus(t *testing.T, what string, ok func(api.CodeStatus) bool) api.CodeStatus {
	t.Helper()
	var status api.CodeStatus
	eventually(t, patience, what, func() bool {
		status = decode[api.CodeStatus](t, s, "code", "status")
		return ok(status)
	})
	return status
}

// Code is deployed and nobody asks for a catalog: the one node whose role it touches has its catalog compiled, is told,
// fetches it and applies it; these agents would ask by themselves only after an hour. Then its role is broken:
// both nodes keep their last good catalogs, and it is shown what is wrong, where, and for whom.
func TestDeployedCodeReachesWhomItTouches(t *testing.T) {
	begin(t, 120)
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s", "--max-load", "0", "--reuse-check", "0")
	control := rolesCode(t)
	one := versionOf(t, s, control)
	web := joinScheduled(t, s, "web.ahead.test", "web", "--catalog-poll-interval", "1h")
	db := joinScheduled(t, s, "db.ahead.test", "db", "--catalog-poll-interval", "1h")
	web.start(t)
	db.start(t)
	first, other := web.kept(t), db.kept(t)
	same(t, "page", "first page\n", web.read(t, "page"))
	same(t, "table", "first table\n", db.read(t, "table"))
	s.codeStatus(t, "both are current", func(c api.CodeStatus) bool {
		return c.Version == one && c.Nodes == 2 && c.Current == 2 && c.Waiting == 0
	})

	eventually(t, patience, "nothing is left to be compiled or told", func() bool {
		q := decode[api.CompileQueueStatus](t, s, "compile", "queue")
		return q.Wanted+q.Running+q.Resting == 0 && s.metric(t, "tutti_hints_waiting") == 0
	})
	wanted, untouched, told := s.metric(t, "tutti_ahead_code_total"), s.metric(t, "tutti_ahead_untouched_total"), s.metric(t, "tutti_hints_told_total")
	write(t, filepath.Join(control, "modules/web/files/page.txt"), "second page\n")
	two := versionOf(t, s, control)
	second := web.ran(t, "applies what it was told of", func(s agentpkg.Status) bool {
		return s.Runs.Last.Status == "changed" && after(s, first) && s.Catalog.Version == two
	})
	same(t, "page", "second page\n", web.read(t, "page"))
	if second.Runs.Last.Catalog != second.Catalog.Digest || second.Catalog.Digest == first.Catalog.Digest {
		t.Errorf("it applied %+v of %+v; before it had %+v", second.Runs.Last, second.Catalog, first.Catalog)
	}
	for name, more := range map[string]float64{"tutti_ahead_code_total": wanted, "tutti_ahead_untouched_total": untouched, "tutti_hints_told_total": told} {
		if now := s.metric(t, name); now != more+1 {
			t.Errorf("%s was %g and is %g: one node is touched, told, and one is not", name, more, now)
		}
	}
	db.keeps(t, other)
	s.codeStatus(t, "both are current", func(c api.CodeStatus) bool { return c.Version == two && c.Current == 2 })

	write(t, filepath.Join(control, "modules/web/manifests/init.pp"), "class web {\n  pages { 'all': }\n}\n")
	deployed := s.try(t, "code", "deploy", "production", control)
	if deployed.code != 4 || s.codeStatus(t, "the code is what it was", func(api.CodeStatus) bool { return true }).Version != two {
		t.Errorf("broken code was deployed: exit code %d\n%s", deployed.code, deployed.text())
	}
	contains(t, deployed.text(), "modules/web/manifests/init.pp:2", "pages", web.agent.name, "nothing was deployed")
	three := decode[api.Version](t, s, "code", "deploy", "--force", "production", control).ID
	status := s.codeStatus(t, "one fails", func(c api.CodeStatus) bool { return c.Version == three && c.Failed == 1 })
	if status.Current != 1 || status.NoCatalog != 0 || len(status.Errors) != 1 {
		t.Fatalf("status %+v", status)
	}
	if e := status.Errors[0]; !strings.HasSuffix(e.File, "modules/web/manifests/init.pp") || e.Line != 2 || e.Nodes != 1 || len(e.Names) != 1 ||
		e.Names[0] != web.agent.name {
		t.Errorf("the error is %+v", e)
	}
	contains(t, s.tutti(t, "code", "status"), "2 nodes, 1 current, 0 waiting, 1 failed", "modules/web/manifests/init.pp:2", "pages", web.agent.name)
	web.write(t, "page", "drift\n")
	third := web.ran(t, "mends by its last good catalog", func(s agentpkg.Status) bool { return s.Runs.Last.Status == "changed" && after(s, second) })
	same(t, "page", "second page\n", web.read(t, "page"))
	if third.Catalog.Digest != second.Catalog.Digest || third.Runs.Last.Catalog != second.Catalog.Digest {
		t.Errorf("with broken code it keeps %+v and applied %+v; before: %+v", third.Catalog, third.Runs.Last, second.Catalog)
	}
	db.keeps(t, other)
	run := s.try(t, "run", web.agent.name, db.agent.name)
	if run.code != 4 {
		t.Errorf("a run of a catalog that does not compile: exit code %d\n%s", run.code, run.text())
	}
	const says = ": failed: its catalog does not compile (modules/web/manifests/init.pp:2: "
	contains(t, run.text(), web.agent.name+says, "; it applied the one it had", db.agent.name+": unchanged")
	contains(t, s.tutti(t, "job", "show", "1"),
		"its catalog does not compile (modules/web/manifests/init.pp:2: ", "; it applied the one it had; tutti report show ")
	contains(t, s.tutti(t, "node", "list"), "does not compile, ")
	contains(t, s.tutti(t, "node", "show", web.agent.name), "Compile error", "modules/web/manifests/init.pp:2: ", "pages")
	run = s.try(t, "run", web.agent.name, "--use-cached-catalog")
	if run.code != 0 {
		t.Errorf("a run of the catalog that it has, as ordered: exit code %d\n%s", run.code, run.text())
	}
}

// keeps says that a node goes on with the catalog that it had.
func (n scheduled) keeps(t *testing.T, before agentpkg.Status) {
	t.Helper()
	s := n.ran(t, "goes on", func(s agentpkg.Status) bool { return after(s, before) })
	if s.Catalog.Digest != before.Catalog.Digest || s.Catalog.Version != before.Catalog.Version || s.Runs.Last.Status != "unchanged" {
		t.Errorf("%s keeps %+v and ran %+v; before: %+v", n.agent.name, s.Catalog, s.Runs.Last, before.Catalog)
	}
}
