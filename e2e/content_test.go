package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/store/backup"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// A server's content is moved to an S3 store while it runs. Then the store is gone: what is cached is served, the rest says 503, and comes
// back by itself. A backup of it is restored into a directory.
func TestContentInAnS3Store(t *testing.T) {
	begin(t, 60)
	store, dir := blobs3test.Start(t), t.TempDir()
	s := newServer(dir, "--autosign", "all")
	credentials := store.Credentials(blobs3test.SecretKey)
	s.env = append(s.env, "TUTTI_BLOBS_ENDPOINT="+store.Endpoint, "TUTTI_BLOBS_CREDENTIALS="+credentials)
	s.startFor(t)
	s.deploy(t, "production")

	// There while it runs, and again, and back.
	copied := decode[cas.Copied](t, s, "blobs", "copy", "directory", "s3://tutti/content")
	if copied.Blobs == 0 || copied.New != copied.Blobs || len(copied.Damaged) > 0 {
		t.Errorf("copied: %+v", copied)
	}
	again := decode[cas.Copied](t, s, "blobs", "copy", "directory", "s3://tutti/content")
	if again.Blobs < copied.Blobs || again.New > again.Blobs-copied.Blobs {
		t.Errorf("copied again: %+v", again)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	settings := "blobs_endpoint: " + store.Endpoint + "\nblobs_credentials: " + credentials + "\n"
	if err := os.WriteFile(filepath.Join(dir, "server.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(docs, "many-servers.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(page), "\n## Content\n")
	s.followsText(t, dir, "many-servers.md", part)
	if err := os.RemoveAll(filepath.Join(s.data, "blobs")); err != nil {
		t.Fatal(err)
	}

	s.flags = append(s.flags, "--blobs", "s3://tutti/content")
	contains(t, s.try(t, "server", "--check-config", "--blobs", "s3://tutti/content").text(), "s3://tutti/content can be written and read")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	n, late := enrol(t, s, "content-1.test"), enrol(t, s, "content-2.test")
	get := func(name string) answer {
		t.Helper()
		return n.must(t, http.MethodGet, "/puppet/v3/file_content/modules/story/"+name+"?environment=production", "", nil)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "control", "production", "modules", "story", "files", "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	facts := map[string]any{"role": "web"}
	if first, err := n.catalog("production", facts); err != nil || first.status != http.StatusOK {
		t.Fatalf("the catalog: %d %s, %v", first.status, first.body, err)
	}
	if a := get("a.txt"); a.status != http.StatusOK || a.body != string(want) {
		t.Fatalf("a.txt: %d %s", a.status, a.body)
	}

	store.Kill()
	other, err := os.ReadFile(filepath.Join("testdata", "control", "production", "modules", "story", "files", "b.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(other)
	d := hex.EncodeToString(sum[:])
	if err := os.Remove(filepath.Join(s.data, "blobcache", "blobs", d[:2], d)); err != nil {
		t.Fatal(err)
	}
	if a := get("a.txt"); a.status != http.StatusOK || a.body != string(want) {
		t.Errorf("what is cached: %d %s", a.status, a.body)
	}
	if again, err := n.catalog("production", facts); err != nil || again.status != http.StatusOK {
		t.Errorf("a catalog that is cached: %d %s, %v", again.status, again.body, err)
	}
	if a := get("b.txt"); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "does not answer") {
		t.Errorf("what is not cached: %d %v %s", a.status, a.header, a.body)
	}
	eventually(t, patience, "a catalog that nobody had is put off, and says why", func() bool {
		a := late.must(t, http.MethodPost, "/puppet/v3/catalog/"+late.name+"?environment=production", "application/x-www-form-urlencoded",
			catalogForm(late.name, "production", facts))
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Fatalf("a catalog that nobody had: %d %v %s", a.status, a.header, a.body)
		}
		return strings.Contains(a.body, "does not answer")
	})
	eventually(t, patience, "who operates the server sees what waits, and why", func() bool {
		seen := s.try(t, "compile", "queue").text()
		return strings.Contains(seen, "to be tried again") && strings.Contains(seen, "does not answer") &&
			strings.Contains(s.metrics(t), "\ntutti_compile_trouble{trouble=")
	})
	code := t.TempDir()
	if err := os.WriteFile(filepath.Join(code, "environment.conf"), []byte("# content that is nowhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := s.try(t, "code", "deploy", "--no-check", "other", code)
	contains(t, refused.text(), "does not answer")
	same(t, "the exit code is that of a success", false, refused.code == 0)
	same(t, "the store answers", false, storeAnswers(t, n))

	store.Again()
	eventually(t, patience, "what is not cached is served again", func() bool { return get("b.txt").status == http.StatusOK })
	eventually(t, patience, "the catalog that nobody had is compiled", func() bool {
		a, err := late.catalog("production", facts)
		return err == nil && a.status == http.StatusOK
	})
	same(t, "the store answers", true, storeAnswers(t, n))

	// Into a backup, and from it into a directory.
	key := filepath.Join(dir, "key")
	public := strings.TrimSpace(s.tutti(t, "backup", "key", key))
	made := decode[backup.Result](t, s, "backup", "create", filepath.Join(dir, "all.backup"), "--recipient", public, "--blobs", "s3://tutti/content")
	if made.Blobs < copied.Blobs {
		t.Errorf("%d blobs in the backup, %d were copied", made.Blobs, copied.Blobs)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	store.Kill()
	restored := newServer(t.TempDir(), "--autosign", "all")
	restored.tutti(t, "backup", "restore", filepath.Join(dir, "all.backup"), "--identity-file", key)
	restored.startFor(t)
	elsewhere := enrol(t, restored, "content-3.test")
	if a := elsewhere.must(t, http.MethodGet, "/puppet/v3/file_content/modules/story/a.txt?environment=production", "", nil); a.body != string(want) {
		t.Errorf("a.txt of the restored server: %d %s", a.status, a.body)
	}
}

func storeAnswers(t *testing.T, n *node) bool {
	t.Helper()
	var services map[string]struct {
		Status struct {
			Answers bool `json:"answers"`
		} `json:"status"`
	}
	a := n.must(t, http.MethodGet, "/status/v1/services", "", nil)
	if err := json.Unmarshal([]byte(a.body), &services); err != nil || a.status != http.StatusOK {
		t.Fatalf("status: %d %s, %v", a.status, a.body, err)
	}
	return services["content"].Status.Answers
}
