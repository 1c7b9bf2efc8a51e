package puppetrun

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// applies is a Puppet that reports the catalog it finds, as Puppet does. Its plugins are those of
// a version that is asked for.
const applies = `
[ "$1" = plugin ] && exit $(cat plugin-exit 2>/dev/null || echo 0)
c=client_data/catalog/web1.json
sed "s/^environment:.*/&\ncatalog_uuid: $(sed 's/.*"catalog_uuid":"\([^"]*\)".*/\1/' $c)\ncode_id: $(sed 's/.*"code_id":"\([^"]*\)".*/\1/' $c)/" new-report > with-catalog
mv with-catalog new-report
report
`

// keep keeps a catalog as an agent does, and returns the configuration for it.
func (s *stub) keep() pxp.PuppetConfiguration {
	s.t.Helper()
	document, digest, err := catalog.Normalise([]byte(`{"resources":[],"metadata":{"/f":{}},"name":"web1"}`), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write("document", string(document))
	return pxp.PuppetConfiguration{
		Puppet: filepath.Join(s.dir, "puppet"), Plugins: filepath.Join(s.dir, "plugins"), Reports: filepath.Join(s.dir, "reports"),
		Catalog: &pxp.PuppetCatalog{
			Document: filepath.Join(s.dir, "document"), Digest: string(digest), Node: "web1", Environment: "production", Version: "v1", UUID: "u1",
		},
	}
}

func (s *stub) with(c pxp.PuppetConfiguration, flags ...string) (pxp.PuppetResults, string) {
	s.t.Helper()
	input := pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: append([]string{}, flags...)})
	results, _, printed := s.order(s.t.Context(), string(pxp.Data(pxp.PuppetOrder{Input: input, Configuration: c})))
	return results, printed
}

// The kept catalog is written for Puppet, with what its pointer says, and the plugins of its version are synced once.
func TestCachedCatalog(t *testing.T) {
	t.Parallel()
	s := newStub(t, applies)
	c := s.keep()
	for range 2 {
		results, printed := s.with(c, "--noop")
		want := changed()
		want.Catalog = c.Catalog.Digest
		if diff := cmp.Diff(want, results); diff != "" {
			t.Fatalf("results (-want +got):\n%s\n%s", diff, printed)
		}
		s.write("new-report", someReport)
	}
	run := "agent --onetime --no-daemonize --verbose --noop --use_cached_catalog --environment production --catalog_cache_terminus json\n"
	sync := "plugin download --environment production --http_connect_timeout 15s --server puppet.example.test --server_list one:8140,two:8141\n"
	if diff := cmp.Diff(sync+run+run, s.runs()); diff != "" {
		t.Errorf("Puppet was called (-want +got):\n%s", diff)
	}
	path := filepath.Join(s.dir, "client_data/catalog/web1.json")
	text, err := os.ReadFile(path)
	if want := `{"version":"v1","code_id":"v1","catalog_uuid":"u1","metadata":{"/f":{}},"name":"web1","resources":[]}`; err != nil || string(text) != want {
		t.Errorf("the catalog for Puppet is %s, %v, want %s", text, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}

	c.Catalog.Version = "v2" // another version's plugins are not there
	s.with(c, "--environment", "other", "--use_cached_catalog")
	s.with(pxp.PuppetConfiguration{Puppet: c.Puppet, Plugins: c.Plugins}) // this run syncs by itself
	s.with(c)
	if got := strings.Count(s.runs(), "plugin download"); got != 3 {
		t.Errorf("plugins were synced %d times:\n%s", got, s.runs())
	}
}

func TestCachedCatalogThatCannotBeApplied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		change func(*stub, *pxp.PuppetCatalog)
		want   string // error type
		text   string
		runs   int
	}{
		"damaged": {applies, func(s *stub, _ *pxp.PuppetCatalog) { s.write("document", "{}") }, pxp.CatalogDamaged, "not what its digest says", 0},
		"gone":    {applies, func(_ *stub, c *pxp.PuppetCatalog) { c.Document += "-gone" }, pxp.CatalogDamaged, "no such file", 0},
		"of another node": {
			applies, func(_ *stub, c *pxp.PuppetCatalog) { c.Node = "db1" }, pxp.CatalogForeign, "puppet is configured for web1, but the catalog is of db1", 0,
		},
		"disabled":        {applies, func(s *stub, _ *pxp.PuppetCatalog) { s.write("disabled", "") }, pxp.AgentDisabled, "puppet agent --enable", 0},
		"another applied": {"[ $1 = plugin ] || report", func(*stub, *pxp.PuppetCatalog) {}, pxp.OtherCatalog, `not "u1" of version "v1"`, 1},
		"failed to apply": {
			"[ $1 = plugin ] || { sed -i s/changed/failed/ new-report; report; exit 1; }", func(*stub, *pxp.PuppetCatalog) {}, pxp.AgentExitNonZero, "exit code 1", 1,
		},
		"left no report": {"[ $1 = plugin ] || exit 1", func(*stub, *pxp.PuppetCatalog) {}, pxp.NoLastRunReport, "left no report", 1},
		"no room to write": {
			applies, func(s *stub, _ *pxp.PuppetCatalog) { s.write("client_data", "a file") }, pxp.AgentFailedToStart, "could not be given to Puppet", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, c.body)
			configuration := s.keep()
			c.change(s, configuration.Catalog)
			results, printed := s.with(configuration)
			if results.ErrorType != c.want || !strings.Contains(results.Error, c.text) || results.Catalog != "" {
				t.Errorf("got %+v\n%s", results, printed)
			}
			if got := strings.Count(s.runs(), "--onetime"); got != c.runs {
				t.Errorf("Puppet ran %d times, not %d", got, c.runs)
			}
		})
	}
}

// A run must go on when the server is away, with the plugins that are there; they are synced as soon as that works.
func TestPluginsThatCannotBeSynced(t *testing.T) {
	t.Parallel()
	s := newStub(t, applies)
	c := s.keep()
	s.write("plugin-exit", "1")
	results, printed := s.with(c)
	if results.Catalog == "" || !strings.Contains(printed, "plugins not synced") {
		t.Errorf("%+v\n%s", results, printed)
	}
	s.write("plugin-exit", "0")
	s.with(c)
	s.with(c)
	if got := strings.Count(s.runs(), "plugin download"); got != 2 {
		t.Errorf("plugins were synced %d times", got)
	}
}

// A report that no server took is kept as it is sent.
func TestReportThatWasNotSent(t *testing.T) {
	t.Parallel()
	s := newStub(t, `report; printf 'Error: Could not se'; sleep 0.05; echo 'nd report: Failed to open TCP connection' >&2`)
	reports := filepath.Join(s.dir, "reports")
	if results, _ := s.with(pxp.PuppetConfiguration{Puppet: filepath.Join(s.dir, "puppet"), Reports: reports}); results.Status != "changed" {
		t.Errorf("%+v", results)
	}
	kept, err := filepath.Glob(filepath.Join(reports, "*-8b3a7c5e-0000-4000-8000-000000000001.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	text, err := os.ReadFile(kept[0])
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"host": "web1", "status": "changed", "noop": false, "time": "2026-11-21T10:00:00.123456789+01:00"}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreMapEntries(func(k string, _ any) bool { _, ok := want[k]; return !ok })); diff != "" {
		t.Errorf("the report (-want +got):\n%s", diff)
	}

	sent := newStub(t, "report")
	sent.with(pxp.PuppetConfiguration{Puppet: filepath.Join(sent.dir, "puppet"), Reports: filepath.Join(sent.dir, "reports")})
	if _, err := os.Stat(filepath.Join(sent.dir, "reports")); !os.IsNotExist(err) {
		t.Errorf("a report that was sent is kept: %v", err)
	}
}
