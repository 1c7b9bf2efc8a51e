package backup

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/blobdir"
)

// tables is Records and Loader: rows in memory.
type tables struct {
	rows     map[string][][]any
	begun    int
	onBegin  func(n int)
	finished bool
	fails    error
}

func (m *tables) Begin(context.Context) error {
	m.begun++
	if m.onBegin != nil {
		m.onBegin(m.begun)
	}
	return nil
}

func (m *tables) Describe(context.Context) (Schema, []Table, error) {
	return Schema{Engine: "memory", Number: 7, Writer: "v1"}, []Table{{"nodes", []string{"id", "name"}}, {"none", []string{"x"}}}, nil
}

func (m *tables) Rows(_ context.Context, table Table, each func([]any) error) error {
	for _, row := range m.rows[table.Name] {
		if err := each(row); err != nil {
			return err
		}
	}
	return m.fails
}

func (m *tables) Sequences(context.Context) (map[string]int64, error) {
	return map[string]int64{"nodes": 9}, nil
}

func (m *tables) Load(_ context.Context, table Table, rows iter.Seq2[[]any, error]) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		m.rows[table.Name] = append(m.rows[table.Name], row)
	}
	return m.fails
}

func (m *tables) Finish(_ context.Context, sequences map[string]int64) error {
	m.finished = sequences["nodes"] == 9
	return nil
}

func (m *tables) Close() error { return nil }

// world is a server's data directory with a way to lock and open its backups.
type world struct {
	t      *testing.T
	source Source
	blobs  *blobdir.Store
	rows   *tables
	lock   Lock
	key    Key
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, rows: &tables{rows: map[string][][]any{}}}
	dir := filepath.Join(t.TempDir(), "data")
	for name, text := range map[string]string{
		"ca/ca.pem": "the key", "ca/journal.jsonl": "1\n2\n", "seal.key": "seal", "admin.token": "token", "new/of/others": "new",
		"lock": "77", "address": "x", "tutti.db": "rows", "tutti.db-wal": "more", "trees/a": "tree", "ruby/b": "ruby", "admin.token.new": "half",
	} {
		put(t, filepath.Join(dir, name), text)
	}
	for n := range 40_000 { // several chunks
		w.rows.rows["nodes"] = append(w.rows.rows["nodes"], []any{int64(n), strings.Repeat("n", 200)})
	}
	var err error
	if w.blobs, err = blobdir.Open(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.blobs.Close() })
	w.blob("small")
	w.blob(strings.Repeat("large", keptBytes/4))
	w.source = Source{
		Dir: dir, Settings: []byte("listen: :8140\n"), Tutti: "v1", Now: time.Date(2026, 11, 23, 10, 15, 0, 0, time.UTC),
		Records: func(context.Context) (Records, error) { return w.rows, nil },
		Blobs:   func(ctx context.Context) (Blobs, error) { return blobdir.OpenBeside(ctx, filepath.Join(dir, "blobs")) },
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	if w.lock, err = LockTo("# a comment\n" + identity.Recipient().String() + "\n"); err != nil {
		t.Fatal(err)
	}
	if w.key, err = KeyIn([]byte(identity.String())); err != nil {
		t.Fatal(err)
	}
	return w
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *world) blob(text string) fleet.Digest {
	w.t.Helper()
	d, _, err := w.blobs.Put(w.t.Context(), strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *world) create(target string) Result {
	w.t.Helper()
	r, err := Create(w.t.Context(), w.source, target, w.lock)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// restore brings a backup back and compares everything with what it was made of.
func (w *world) restore(target, id string) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "elsewhere")
	blobs, err := blobdir.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = blobs.Close() }()
	loaded := &tables{rows: map[string][][]any{}}
	settled := false
	_, err = Restore(w.t.Context(), target, id, w.key, Destination{
		Dir: dir, Blobs: blobs,
		Loader: func(_ context.Context, s Schema) (Loader, error) {
			if s != (Schema{Engine: "memory", Number: 7, Writer: "v1"}) {
				w.t.Errorf("schema %+v", s)
			}
			return loaded, nil
		},
		Settle: func(context.Context, Header) error {
			settled = true
			if CheckDataDir(dir) == nil {
				w.t.Error("a server could start before the restore ended")
			}
			return nil
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := CheckDataDir(dir); err != nil || !settled || !loaded.finished {
		w.t.Errorf("not ended: %v, settled %t, finished %t", err, settled, loaded.finished)
	}
	if diff := cmp.Diff(w.rows.rows, loaded.rows); diff != "" {
		w.t.Errorf("rows (-want +got):\n%.2000s", diff)
	}
	want := map[string]string{
		"ca/ca.pem": "the key", "ca/journal.jsonl": "1\n2\n", "seal.key": "seal", "admin.token": "token", "new/of/others": "new", SettingsFile: "listen: :8140\n",
	}
	if diff := cmp.Diff(want, content(w.t, dir)); diff != "" {
		w.t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(digests(w.t, filepath.Join(w.source.Dir, "blobs")), digests(w.t, filepath.Join(dir, "blobs"))); diff != "" {
		w.t.Errorf("blobs (-want +got):\n%s", diff)
	}
}

func digests(t *testing.T, dir string) map[fleet.Digest]int64 {
	t.Helper()
	r, err := blobdir.OpenBeside(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	all := map[fleet.Digest]int64{}
	if err := r.Each(t.Context(), func(d fleet.Digest, size int64) error { all[d] = size; return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// content is every small file of a data directory.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if strings.HasPrefix(name, "blobs/") {
			return nil
		}
		text, err := os.ReadFile(path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
