package e2e_test

import (
	"bytes"
	"crypto/tls"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/catalog"
	fleetpkg "github.com/tutti-project/tutti/internal/fleet"
)

// What must be seen nowhere but in the documents of catalogs and on the nodes.
const (
	sensitiveText = "hunter-two-of-this-story"
	quietText     = "whispered-in-this-story"
)

// previewedCode has a text that says which code it is of, a fact in it, and secrets that change with it.
func previewedCode(t *testing.T, word string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests/site.pp"), `
file { "${facts['scratch']}/said": content => epp('said/said.epp') }
file { "${facts['scratch']}/secret": content => Sensitive("`+sensitiveText+" "+word+`\n") }
file { "${facts['scratch']}/quiet": content => "`+quietText+" "+word+`\n", show_diff => false }
`)
	write(t, filepath.Join(dir, "modules/said/templates/said.epp"), word+" in phase <%= $facts['phase'] %>\n")
	return dir
}

// releasing is a server, and two nodes in released mode: one with `tutti agent`, one with a stock agent only.
type releasing struct {
	*server
	client      *api.Client
	ours, stock *agent
	daemon      *daemon
}

func newReleasing(t *testing.T) *releasing {
	t.Helper()
	s := startServer(t, "--autosign", "all", "--compile-patience", "30s", "--max-load", "0")
	r := &releasing{server: s, client: apiClient(t, s)}
	s.tutti(t, "code", "deploy", "production", previewedCode(t, "one"))
	r.ours, r.stock = newAgent(t, s, "ours.test", "phase=1"), newAgent(t, s, "stock.test", "phase=1")
	for _, a := range []*agent{r.ours, r.stock} {
		a.run(t, 2)
		s.tutti(t, "catalog", "mode", a.name, "released")
	}
	dir := t.TempDir()
	s.tutti(t, "agent", "join", s.url, "--dir", dir, "--use-puppet-certificates", "--puppet-ssldir", filepath.Join(r.ours.home, "ssldir"),
		"--certname", r.ours.name)
	r.daemon = newDaemon(t, r.ours.name, dir, "--puppet", r.ours.wrapper(t, dir))
	r.daemon.start(t)
	r.daemon.connectedTo(t, "localhost:"+s.port())
	return r
}

// preview previews code, and returns its number and what it shows.
func (r *releasing) preview(t *testing.T, dir string) (id int64, shown string) {
	t.Helper()
	shown = r.tutti(t, "preview", "create", "production", "--ref", dir)
	previews := decode[api.List[struct {
		ID json.Number `json:"id"`
	}]](t, r.server, "preview", "list").Items
	if len(previews) == 0 {
		t.Fatalf("there is no preview:\n%s", shown)
	}
	id, err := json.Number(strings.Trim(string(previews[0].ID), `"`)).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return id, shown
}

// release releases a preview and returns the release when it has ended.
func (r *releasing) release(t *testing.T, request api.ReleaseCreateRequest) (api.ReleaseReport, map[string]api.ReleaseTarget) {
	t.Helper()
	made, err := api.ReleaseCreate.Call(t.Context(), r.client, request)
	if err != nil {
		t.Fatal(err)
	}
	ended := r.until(t, made.ID, "has ended", func(x api.Release) bool { return x.EndedAt != nil })
	ended.Left = made.Left
	return ended, r.targets(t, made.ID)
}

// until waits until a release stands as it shall.
func (r *releasing) until(t *testing.T, id, what string, ok func(api.Release) bool) (got api.ReleaseReport) {
	t.Helper()
	eventually(t, 2*patience, "release "+id+" "+what, func() bool {
		var err error
		got, err = api.ReleaseShow.Call(t.Context(), r.client, api.ReleaseShowRequest{Release: id})
		return err == nil && ok(got.Release)
	})
	return got
}

func (r *releasing) targets(t *testing.T, id string) map[string]api.ReleaseTarget {
	t.Helper()
	return releaseTargets(t, r.client, id)
}

func releaseTargets(t *testing.T, client *api.Client, id string) map[string]api.ReleaseTarget {
	t.Helper()
	all, request := map[string]api.ReleaseTarget{}, api.ReleaseTargetsRequest{Release: id, Limit: 1000}
	for {
		page, err := api.ReleaseTargets.Call(t.Context(), client, request)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range page.Items {
			all[target.Name] = target
		}
		if request.After = page.Next; page.Next == "" {
			return all
		}
	}
}

// node is an agent's node by its certificate, for what an agent would not show.
func (a *agent) asNode(t *testing.T) *node {
	t.Helper()
	certificate, err := tls.LoadX509KeyPair(filepath.Join(a.home, "ssldir/certs", a.name+".pem"), filepath.Join(a.home, "ssldir/private_keys", a.name+".pem"))
	if err != nil {
		t.Fatal(err)
	}
	return &node{server: a.server, name: a.name, client: newHTTPClient(t, &tls.Config{
		RootCAs: a.server.roots(t), MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
	})}
}

// What was previewed is byte for byte what nodes are given and apply: the stored document has the digest that was
// released, the answer to a stock agent is that document with its stamp, and both kinds of agent apply it and nothing else. A fact that
// changes between preview and release, or between two waves, is caught. Secrets are seen nowhere.
func TestWhatWasPreviewedIsReleased(t *testing.T) {
	begin(t, 100)
	r := newReleasing(t)
	shown := strings.Builder{}
	two, text := r.preview(t, previewedCode(t, "two"))
	shown.WriteString(text)
	for _, a := range []*agent{r.ours, r.stock} {
		shown.WriteString(r.tutti(t, "preview", "diff", strconv.FormatInt(two, 10), a.name))
	}
	contains(t, shown.String(), "-one in phase 1", "+two in phase 1")

	r.tutti(t, "code", "deploy", "production", previewedCode(t, "other")) // what is deployed meanwhile means nothing
	release, targets := r.release(t, api.ReleaseCreateRequest{Preview: two, Targets: api.JobTargets{Nodes: []string{r.ours.name, r.stock.name}}})
	same(t, "states", map[string]string{r.ours.name: "changed", r.stock.name: "offline"}, // it has no agent that could be told
		map[string]string{r.ours.name: targets[r.ours.name].State, r.stock.name: targets[r.stock.name].State})
	r.stock.run(t, 2)
	for _, a := range []*agent{r.ours, r.stock} {
		r.isReleased(t, a, targets[a.name])
		same(t, a.name+" has", "two in phase 1\n"+sensitiveText+" two\n"+quietText+" two\n", a.read(t, "said")+a.read(t, "secret")+a.read(t, "quiet"))
	}
	r.stock.run(t, 0)

	r.caught(t, &shown)
	r.nothingSecret(t, release, shown.String())
}

// isReleased compares what was released with what the node is given and what it applied.
func (r *releasing) isReleased(t *testing.T, a *agent, target api.ReleaseTarget) {
	t.Helper()
	as := a.asNode(t)
	document := as.must(t, http.MethodGet, "/node/v1/catalogs/"+target.Catalog, "", nil)
	if got := fleetpkg.DigestOf([]byte(document.body)); document.status != http.StatusOK || string(got) != target.Catalog {
		t.Fatalf("%s: the document of %s is %d, %s", a.name, target.Catalog, document.status, got)
	}
	given, err := as.catalog("production", map[string]any{"scratch": a.scratch, "phase": "1"})
	if err != nil || given.status != http.StatusOK {
		t.Fatalf("%s: %d %s %v", a.name, given.status, given.body, err)
	}
	var stamp struct {
		UUID    string          `json:"catalog_uuid"`
		Version fleetpkg.Digest `json:"code_id"`
	}
	if err := json.Unmarshal([]byte(given.body), &stamp); err != nil {
		t.Fatal(err)
	}
	want, err := catalog.Render([]byte(document.body), catalog.Stamp{Version: stamp.Version, UUID: stamp.UUID, Static: true})
	if err != nil {
		t.Fatal(err)
	}
	if given.body != string(want) {
		t.Errorf("%s is given another catalog than was previewed:\n%s", a.name, cmp.Diff(string(want), given.body))
	}
	if report := a.lastReport(t); report.CatalogUUID != stamp.UUID || report.Status != "changed" {
		t.Errorf("%s applied %s (%s), released is %s", a.name, report.CatalogUUID, report.Status, stamp.UUID)
	}
	kept, err := filepath.Glob(filepath.Join(a.home, "vardir/client_data/catalog/*.json"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%s keeps the catalogs %v", a.name, kept)
	}
	applied, err := os.ReadFile(kept[0]) // Puppet writes it anew
	if err != nil {
		t.Fatal(err)
	}
	var was, is struct{ Resources, Edges any }
	for _, text := range []*[]byte{&want, &applied} { // Puppet spells it otherwise when it writes
		*text = bytes.ReplaceAll(*text, []byte(`"Class[main]"`), []byte(`"Class[Main]"`))
	}
	if json.Unmarshal(want, &was) != nil || json.Unmarshal(applied, &is) != nil {
		t.Fatalf("%s keeps no catalog", a.name)
	}
	if !cmp.Equal(was.Edges, is.Edges) {
		t.Errorf("%s applied other edges than were previewed:\n%s", a.name, cmp.Diff(was.Edges, is.Edges))
	}
}

// caught changes a fact between a preview and its release, and between two waves.
func (r *releasing) caught(t *testing.T, shown *strings.Builder) {
	t.Helper()
	three, text := r.preview(t, previewedCode(t, "three"))
	shown.WriteString(text)
	r.phase(t, r.stock, "2")
	both := api.JobTargets{Nodes: []string{r.ours.name, r.stock.name}}
	made, err := api.ReleaseCreate.Call(t.Context(), r.client, api.ReleaseCreateRequest{Preview: three, Targets: both, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Left) != 1 || made.Left[0].Name != r.stock.name || made.Left[0].State != "superseded" || !strings.Contains(made.Left[0].Reason, "phase") {
		t.Errorf("a fact has changed since the preview: %+v", made.Left)
	}

	four, text := r.preview(t, previewedCode(t, "four"))
	shown.WriteString(text)
	made, err = api.ReleaseCreate.Call(t.Context(), r.client, api.ReleaseCreateRequest{
		Preview: four, Targets: both, ReleaseOptions: api.ReleaseOptions{Waves: []string{"1", "rest"}, Promote: "manual"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.until(t, made.ID, "waits to be promoted", func(x api.Release) bool { return x.Hold == "promotion" })
	second := r.ours
	if targets := r.targets(t, made.ID); targets[r.stock.name].Wave == 2 {
		second = r.stock
	}
	r.phase(t, second, "3")
	r.tutti(t, "release", "promote", made.ID)
	r.until(t, made.ID, "has ended", func(x api.Release) bool { return x.EndedAt != nil })
	if target := r.targets(t, made.ID)[second.name]; target.State != "superseded" || !strings.Contains(target.Reason, "phase") {
		t.Errorf("a fact has changed since the first wave: %+v", target)
	}
	second.run(t, 0)
	if said := second.read(t, "said"); strings.HasPrefix(said, "four") {
		t.Errorf("%s has %q, which was not released to it", second.name, said)
	}
}

// phase changes a fact of a node, and submits it.
func (r *releasing) phase(t *testing.T, a *agent, phase string) {
	t.Helper()
	for i, entry := range a.env {
		if strings.HasPrefix(entry, "FACTER_phase=") {
			a.env[i] = "FACTER_phase=" + phase
		}
	}
	if out := a.puppet(t, "facts", "upload"); out.code != 0 {
		t.Fatalf("puppet facts upload: %s", out.text())
	}
}

// nothingSecret looks for the secrets wherever people could see them: in what was shown, in answers of the API, in logs, and in the
// database. Documents of catalogs have them: they are blobs, which only their nodes are given.
func (r *releasing) nothingSecret(t *testing.T, release api.ReleaseReport, shown string) {
	t.Helper()
	texts := map[string]string{"previews": shown, "the server's log": r.logText()}
	log, _ := os.ReadFile(r.daemon.log)
	texts["the agent's log"] = string(log)
	for _, args := range [][]string{
		{"preview", "show", "1", "--details", "-o", "json"},
		{"preview", "diff", "1", r.ours.name, "-o", "json"},
		{"release", "show", release.ID, "-o", "json"},
		{"release", "nodes", release.ID, "-o", "json"},
		{"event", "list", "-o", "json"},
		{"report", "show", r.ours.lastReport(t).ID, "-o", "json"},
		{"node", "show", r.ours.name, "-o", "json"},
		{"catalog", "generations", r.ours.name, "-o", "json"},
		{"rollback", r.ours.name, "--dry-run"},
		{"rollback", "--release", release.ID, "--dry-run", "-o", "json"},
	} {
		out := r.try(t, args...)
		texts["tutti "+strings.Join(args, " ")] = out.text()
	}
	err := filepath.WalkDir(r.data, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(r.data, path)
		if err != nil || entry.IsDir() || !strings.HasPrefix(name, "tutti.db") {
			return nil
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		text, err := io.ReadAll(file)
		texts["the database, "+name] = string(text)
		return err
	})
	places := 14
	if r.three != nil {
		places-- // the database has no files here: r.quietRows looks at all of it
	}
	if err != nil || len(texts) < places {
		t.Fatalf("%d places were looked at: %v", len(texts), err)
	}
	r.quietRows(t)
	for place, text := range texts {
		for _, secret := range []string{sensitiveText, quietText} {
			if secret == quietText && strings.HasPrefix(place, "the database") {
				continue // r.quietRows looks more closely
			}
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("a secret is in %s: …%q…", place, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
}

// quietRows looks into every column of every table for the text that is not to be shown in differences. The inventory has it, as PuppetDB
// would: other nodes may collect the resource, and need it.
func (r *releasing) quietRows(t *testing.T) {
	t.Helper()
	db := openDatabase(t, r.server)
	every, in := `SELECT m.name, c.name, format('CAST("%w" AS TEXT)', c.name) FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`,
		"instr"
	if r.three != nil {
		every, in = `SELECT table_name, column_name, CASE data_type WHEN 'bytea' THEN format('encode(%I, ''escape'')', column_name) ELSE format('CAST(%I AS TEXT)', column_name) END
			FROM information_schema.columns WHERE table_schema = 'public'`, "strpos"
	}
	columns, err := db.QueryContext(t.Context(), every)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = columns.Close() }()
	looked := 0
	for columns.Next() {
		var table, column, text string
		if err := columns.Scan(&table, &column, &text); err != nil {
			t.Fatal(err)
		}
		looked++
		for secret, allowed := range map[string]bool{sensitiveText: false, quietText: table == "resource_parameters"} {
			query := fmt.Sprintf(`SELECT COUNT(*) FROM %q WHERE %s(%s, '%s') > 0`, table, in, text, secret)
			if n := count(t, db, query); n > 0 && !allowed {
				t.Errorf("%s is in %d rows of %s.%s", secret, n, table, column)
			}
		}
	}
	if err := columns.Err(); err != nil || looked < 100 {
		t.Errorf("%d columns, %v", looked, err)
	}
}

// count asks a database for a number.
func count(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}
