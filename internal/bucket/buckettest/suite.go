package buckettest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/bucket"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore checks a store. open returns an empty one for each case; it cleans up
// through t.
func RunStore(t *testing.T, open func(t *testing.T) bucket.Store) {
	t.Helper()
	for name, check := range map[string]func(t *testing.T, s bucket.Store){
		"a checksum names a blob":          blobs,
		"a repeated backup moves its time": repeated,
		"backups are listed newest first":  listed,
		"old backups are pruned":           pruned,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func backup(content, path string, minutes int) bucket.Backup {
	return bucket.Backup{
		Algorithm: "md5", Sum: "d41d8cd98f00b204e9800998ecf8427e"[:28] + content, Blob: fleet.DigestOf([]byte(content)),
		Size: int64(len(content)), Node: "a.example", Path: path, At: start.Add(time.Duration(minutes) * time.Minute),
	}
}

func save(t *testing.T, s bucket.Store, rows ...bucket.Backup) {
	t.Helper()
	for _, b := range rows {
		if err := s.SaveBackup(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, s bucket.Store, from, to time.Time, limit int, want ...bucket.Backup) {
	t.Helper()
	got, err := s.Backups(t.Context(), "a.example", from, to, limit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("backups (-want +got):\n%s", diff)
	}
}

func blobs(t *testing.T, s bucket.Store) {
	a := backup("aaaa", "/a", 0)
	other := a
	other.Algorithm, other.Sum = "sha256", string(a.Blob)
	save(t, s, a, other)
	for _, b := range []bucket.Backup{a, other} {
		blob, size, err := s.Blob(t.Context(), b.Algorithm, b.Sum)
		if err != nil || blob != a.Blob || size != 4 {
			t.Errorf("blob of %s: %s, %d, %v", b.Sum, blob, size, err)
		}
	}
	_, _, err := s.Blob(t.Context(), "md5", string(a.Blob))
	if fault.Of(err) != fault.NotFound {
		t.Errorf("unknown checksum: %v, want not_found", err)
	}
	all, err := s.Blobs(t.Context())
	if err != nil || len(all) != 1 || all[0] != a.Blob {
		t.Errorf("blobs: %v, %v, want one", all, err)
	}
}

func repeated(t *testing.T, s bucket.Store) {
	first := backup("aaaa", "/a", 0)
	later := backup("aaaa", "/a", 5)
	elsewhere := backup("aaaa", "/b", 2)
	nameless := backup("aaaa", "", 1)
	save(t, s, first, later, elsewhere, nameless, nameless, first)
	list(t, s, time.Time{}, time.Time{}, 10, later, elsewhere, nameless)
	if count, err := s.PruneBackups(t.Context(), later.At); err != nil || count != 2 {
		t.Errorf("pruned %d, %v, want 2", count, err)
	}
	list(t, s, time.Time{}, time.Time{}, 10, later)
}

func listed(t *testing.T, s bucket.Store) {
	a, b, c, other := backup("aaaa", "/a", 0), backup("bbbb", "/a", 1), backup("cccc", "/c", 2), backup("dddd", "/d", 3)
	other.Node = "b.example"
	save(t, s, b, a, c, other)
	list(t, s, time.Time{}, time.Time{}, 10, c, b, a)
	list(t, s, time.Time{}, time.Time{}, 2, c, b)
	list(t, s, b.At, time.Time{}, 10, c, b)
	list(t, s, time.Time{}, b.At, 10, b, a)
	list(t, s, b.At.Add(time.Second), b.At.Add(2*time.Second), 10)
}

func pruned(t *testing.T, s bucket.Store) {
	a, b := backup("aaaa", "/a", 0), backup("bbbb", "/a", 1)
	save(t, s, a, b)
	count, err := s.PruneBackups(t.Context(), b.At)
	if err != nil || count != 1 {
		t.Errorf("pruned %d, %v, want 1", count, err)
	}
	list(t, s, time.Time{}, time.Time{}, 10, b)
	if _, _, err := s.Blob(t.Context(), a.Algorithm, a.Sum); fault.Of(err) != fault.NotFound {
		t.Errorf("a pruned checksum: %v, want not_found", err)
	}
}
