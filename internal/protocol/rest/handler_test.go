package rest_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/history/historytest"
	"github.com/tutti-project/tutti/internal/appgraph"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/classify/classifytest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
	"github.com/tutti-project/tutti/internal/inventory/saved"
	"github.com/tutti-project/tutti/internal/inventory/saved/savedtest"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/policy"
	"github.com/tutti-project/tutti/internal/policy/policytest"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
	"github.com/tutti-project/tutti/internal/protocol/rest"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
	"github.com/tutti-project/tutti/internal/release/releasetest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

var update = flag.Bool("update", false, "write testdata anew")

// bench is a handler over fakes that hold one node, and some users.
type bench struct {
	t         *testing.T
	compiling compiling
	happened  *eventtest.Store
	events    *event.Service
	handler   http.Handler
	store     *rbactest.Fake
	access    *rbac.Access
	report    string // of web-1
	known     *inventorytest.Fake
	held      *deliveries
	jobs      *job.Service
	records   *jobtest.Store // of jobs
	calls     *historytest.Store
	preview   *previewtest.Store
	stored    *releasetest.Store
	policies  *policy.Service
	blobs     *castest.Store
	stop      chan struct{}
}

// fakeScopes holds one condition to be true of the nodes whose names begin with web.
type fakeScopes struct{}

const webCondition = `facts.role = "web"`

func (fakeScopes) Inside(_ context.Context, condition string, nodes []fleet.Certname) (map[fleet.Certname]bool, error) {
	inside := map[fleet.Certname]bool{}
	for _, node := range nodes {
		inside[node] = condition == webCondition && strings.HasPrefix(string(node), "web")
	}
	return inside, nil
}

// rotating is a CA without listeners.
type rotating struct{ *pki.Authority }

func (r rotating) RotateServer(ctx context.Context) (*x509.Certificate, error) {
	made, err := r.Server.Rotate(ctx, []string{"tutti.test"})
	return made.Leaf, err
}

func newBench(t *testing.T) bench {
	t.Helper()
	return newBenchWith(t, func(log rbac.AuditStore) rbac.AuditStore { return log })
}

// newBenchWith is newBench with an audit log that something was done to.
func newBenchWith(t *testing.T, spoil func(rbac.AuditStore) rbac.AuditStore) bench {
	t.Helper()
	ctx := t.Context()
	blobs, versions, known := castest.New(), codetest.New(), inventorytest.New()
	groups := classifytest.New()
	log := slog.New(slog.DiscardHandler)
	certificates := pkitest.NewMemory()
	ca, err := pki.Open(ctx, pki.Config{Dir: t.TempDir()}, certificates, log)
	check(t, err)
	b := bench{t: t, store: people(t), blobs: blobs, stop: make(chan struct{})}
	b.compiling = newCompiling(t)
	b.jobs, b.records = newJobs(t)
	b.held = newDeliveries()
	b.preview = previewtest.NewStore()
	b.stored = releasetest.NewStore()
	b.policies = &policy.Service{Store: policytest.NewStore()}
	b.access = rbac.NewAccess(rbac.AccessParts{
		Store: b.store, Hasher: rbac.NewHasher(rbac.Cost{Passes: 1, MemoryKiB: 8, Threads: 1}, 2), Config: rbac.DefaultConfig,
		CheckScope: func(string) error { return nil }, Now: time.Now, Log: log,
	})
	b.known = known
	b.calls = historytest.NewStore()
	b.happened = eventtest.NewStore()
	settings := event.DefaultSettings()
	settings.Poll = 10 * time.Millisecond
	b.events = event.New(event.Parts{Store: b.happened, Now: time.Now, Log: log}, settings)
	b.report = b.seed(t, "web-1", "production")
	released := newReleases(b.stored)
	previewed := previewsOver(b.preview)
	b.handler, err = rest.New(rest.Config{
		Console:      func() string { return "https://localhost:8143" },
		Certificates: rotating{ca}, CertificateEnds: certificates, Requests: ca.Requests, Code: codeParts{code.NewLibrary(versions, blobs), versions},
		Sources: newSources(t, blobs), Engines: someEngines{}, Blobs: blobs,
		Nodes: known, Presences: present{}, Asker: present{}, Catalogue: toldModules(t), Invoker: someInvoker(t, b.calls), Calls: b.calls, Judges: halves{},
		Lookups: hiera{}, Targets: asNamed{}, Runs: known, Breakages: broken{},
		Facts: known, Catalogs: known, Inputs: noInputs{}, Deliveries: b.held, Losses: b.held, CatalogReleases: b.held,
		CatalogChanges: b.held, Reports: known, Events: b.events, Inventory: asker{asked}, SavedQueries: saved.Service{Store: savedtest.NewStore()},
		Groups: groups, Classifier: classifier{groups, known}, Tasks: someTasks{}, Jobs: b.jobs, JobOrders: b.jobs, JobFiles: b.records,
		Previews: previewed, PreviewOrders: previewed, Noise: previewed, Applications: appgraph.Service{Store: shop},
		Releases: released.Records, ReleasePlanner: released.Planner, ReleaseControl: released.Control, ReleaseDifferences: twoNodes{},
		Policies: b.policies, PreviewJudge: fixedChanges{b.policies}, Stopping: b.stop,
		Compilations: b.compiling, CompilePauses: b.compiling, CompileTurns: b.compiling, Wanting: b.compiling, Verifying: newVerifying(t), Usages: nothingUsed{},
		Cluster: alone{}, Access: b.access, Audit: rbac.NewAudit(spoil(b.store), log), AuditLog: b.store, AuditChain: rbac.NewChain(b.store, rbactest.Seal{}, log),
		AuditReads: func() bool { return false }, Scopes: fakeScopes{},
		Entry: func(context.Context) rbac.Entry {
			return rbac.Entry{At: time.Now(), Remote: "192.0.2.7", RequestID: "req-1"}
		},
		RequestID: func(context.Context) string { return "req-1" }, NoteActor: func(context.Context, fleet.Actor) {}, Streams: func(context.Context) {}, Log: log,
	})
	check(t, err)
	return b
}

// seed makes a node known and returns the id of its report.
func (b bench) seed(t *testing.T, name fleet.Certname, env fleet.Environment) string {
	t.Helper()
	ctx := t.Context()
	_, _, err := b.known.SaveFacts(ctx, inventory.FactSet{Certname: name, Environment: env, Values: json.RawMessage(`{"os":{"family":"Debian"},"cores":4}`)})
	check(t, err)
	_, err = b.happened.TakeEvents(ctx, []event.Batch{{Node: name, Run: "run-of-" + string(name), Events: []pxp.RunEvent{
		{N: 1, Kind: pxp.RunBegan, At: time.Now(), Environment: string(env)},
		{N: 2, Kind: pxp.RunEnded, At: time.Now(), Environment: string(env), Status: event.Unchanged},
	}}}, time.Now())
	check(t, err)
	report := inventory.Report{ID: fleet.DigestOf([]byte(name)), Certname: name, Environment: env, Status: "changed", ReceivedAt: time.Now()}
	check(t, b.known.SaveReport(ctx, report))
	check(t, b.known.SaveCatalog(ctx, inventory.Catalog{
		Certname: name, Environment: env, Digest: fleet.DigestOf([]byte("c")), Resources: []inventory.Resource{{Type: "File", Title: "/x"}},
	}))
	return string(report.ID)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b bench) call(caller who, method, path string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	r = r.WithContext(fleet.WithActor(r.Context(), caller.actor))
	if caller.token != "" {
		r.Header.Set("Authorization", "Bearer "+secret(caller.token))
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	if err := described(r.Pattern, w); err != nil {
		b.t.Errorf("%s %s answers other than it is described: %v", method, path, err)
	}
	return w
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		check(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	check(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Clients of Puppet Enterprise show a token in a header of their own.
func TestTheOtherTokenHeader(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for token, want := range map[string]int{secret("admin"): 200, " " + secret("admin") + "\n": 200, "guess": 401, "": 401} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/nodes", nil)
		r.Header.Set("X-Authentication", token)
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: %d %s", token, w.Code, w.Body)
		}
	}
}

func TestOperationsAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"list nodes", "GET", "/nodes", "", 200, `"name":"web-1"`},
		{"next page", "GET", "/nodes?limit=1", "", 200, `"next":"web-1"`},
		{"limit too large", "GET", "/nodes?limit=1001", "", 400, "limit must be 1 to 1000"},
		{"unknown filter", "GET", "/nodes?were=x", "", 400, "unknown query field"},
		{"nodes where nothing is asked", "GET", "/nodes?where=x", "", 400, "(line 1, column 2)"},
		{"nodes of no group", "GET", "/nodes?group=none", "", 404, `there is no group \"none\"`},
		{"nodes of an odd status", "GET", "/nodes?status=odd", "", 400, "status must be failed, changed, unchanged or none"},
		{"nodes of an odd environment", "GET", "/nodes?environment=a-b", "", 400, "environment"},
		{"nodes of an unknown group", "GET", "/groups/none/nodes", "", 404, "there is no group"},
		{"show node", "GET", "/nodes/web-1", "", 200, `"status":"changed"`},
		{"unknown node", "GET", "/nodes/web-9", "", 404, `"kind":"not_found"`},
		{"bad name", "GET", "/nodes/WEB", "", 400, "holds a character other than"},
		{"path in name", "GET", "/nodes/..%2Fetc", "", 400, "two dots"},
		{"facts", "GET", "/nodes/web-1/facts", "", 200, `"family":"Debian"`},
		{"catalog", "GET", "/nodes/web-1/catalog", "", 200, `"title":"/x"`},
		{"deactivate", "POST", "/nodes/web-1/deactivate", "", 204, ""},
		{"deactivate an unknown node", "POST", "/nodes/web-9/deactivate", "", 404, `"kind":"not_found"`},
		{"reports", "GET", "/reports?status=changed&name=web-1", "", 200, `"status":"changed"`},
		{"wrong status", "GET", "/reports?status=odd", "", 400, "status must be failed, changed or unchanged"},
		{"report by prefix", "GET", "/reports/" + b.report[:8], "", 200, b.report},
		{"query", "POST", "/query", `{"query":"nodes[certname]{}","total":true}`, 200, `{"columns":["certname"],"total":1,"rows":[{"certname":"web-1"}]}`},
		{"query in JSON", "POST", "/query", `{"query":"[\"from\",\"fact_names\"]"}`, 200, `{"columns":["name"],"rows":[{"certname":"web-1"}]}`},
		{"wrong query", "POST", "/query", `{"query":"nodes{x=1}"}`, 400, "'x' is not a queryable object for nodes"},
		{"unknown operation", "GET", "/teapots", "", 404, "there is no operation GET /api/v1/teapots"},
		{"broken body", "POST", "/join-tokens", `{"name":`, 400, "not the JSON object"},
		{"join token", "POST", "/join-tokens", `{"name":"web-2","seconds":60}`, 200, `"token":"`},
		{"join token for ever", "POST", "/join-tokens", `{"seconds":-1}`, 400, "seconds must be"},
		{"nothing to sign", "POST", "/certificates/web-7/sign", "", 404, "web-7"},
		{"unknown certificate", "DELETE", "/certificates/web-7", "", 404, "no certificate"},
		{"certificate state", "GET", "/certificates?state=odd", "", 400, "state must be"},
		{"missing blobs", "POST", "/blobs/missing", `{"digests":["` + b.report + `"]}`, 200, b.report},
		{"bad digest", "POST", "/blobs/missing", `{"digests":["x"]}`, 400, "64 hexadecimal digits"},
		{"manifest with missing blobs", "POST", "/environments/production/versions", manifestOf(b.report), 409, "not stored"},
		{"manifest that leads outside", "POST", "/environments/production/versions", strings.Replace(manifestOf(b.report), "manifests/site.pp",
			"../etc/passwd", 1), 400, "passwd"},
		{"bad environment", "POST", "/environments/a-b/versions", manifestOf(b.report), 400, "environment"},
		{"unknown environment", "DELETE", "/environments/none", "", 404, "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := b.call(admin, c.method, api.Prefix+c.path, []byte(c.body))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s, want %d with %q", w.Code, w.Body, c.status, c.want)
			}
		})
	}
}

// TestACatalogOfAnotherServer says where it comes from.
func TestACatalogOfAnotherServer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{
		Origin: inventory.Origin{Producer: "ps.example"}, Certname: "web-2", Digest: fleet.DigestOf([]byte("d")), ConfigVersion: "v7", Received: true,
	}))
	w := b.call(admin, "GET", "/api/v1/nodes/web-2/catalog", nil)
	if want := `"version":"v7","uuid":"","producer":"ps.example","received":true,`; w.Code != 200 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("got %d %s, want %s", w.Code, w.Body, want)
	}
}

func manifestOf(digest string) string {
	return `{"manifest":{"module_path":["modules"],"files":[{"path":"manifests/site.pp","digest":"` + digest + `","size":5}]}}`
}

func TestUploadDeployAndList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	content := []byte("node default {}\n")
	digest := string(fleet.DigestOf(content))
	if w := b.call(admin, "POST", "/api/v1/blobs", archive(t, digest, content)); w.Code != 200 || !strings.Contains(w.Body.String(), `"blobs":1`) {
		t.Fatalf("upload: %d %s", w.Code, w.Body)
	}
	body := strings.Replace(manifestOf(digest), `"size":5`, fmt.Sprintf(`"size":%d`, len(content)), 1)
	if w := b.call(admin, "POST", "/api/v1/environments/production/versions", []byte(body)); w.Code != 200 ||
		!strings.Contains(w.Body.String(), `"actor":"admin"`) {
		t.Fatalf("deploy: %d %s", w.Code, w.Body)
	}
	if w := b.call(admin, "GET", "/api/v1/environments", nil); !strings.Contains(w.Body.String(), `"environment":"production"`) {
		t.Errorf("environments: %s", w.Body)
	}
}

func TestUploadRefusesOtherContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wrong := string(fleet.DigestOf([]byte("something else")))
	for name, body := range map[string][]byte{
		"wrong digest": archive(t, wrong, []byte("x")), "no digest": archive(t, "../x", []byte("x")), "no archive": []byte("hello, this is no archive at all"),
		"cut short":       archive(t, string(fleet.DigestOf([]byte("x"))), []byte("x"))[:513-20],
		"cut in an entry": archive(t, string(fleet.DigestOf([]byte("xy"))), []byte("xy"))[:513],
	} {
		if w := b.call(admin, "POST", "/api/v1/blobs", body); w.Code != 400 {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
}

func archive(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	check(t, w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content))}))
	_, err := w.Write(content)
	check(t, err)
	check(t, w.Close())
	return buffer.Bytes()
}
