package filebuckettest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore checks a store. open returns an empty one for each case; it cleans up
// through t.
func RunStore(t *testing.T, open func(t *testing.T) filebucket.Store) {
	t.Helper()
	for name, check := range map[string]func(t *testing.T, s filebucket.Store){
		"a checksum names a blob":          blobs,
		"a repeated backup moves its time": repeated,
		"backups are listed newest first":  listed,
		"old backups are pruned":           pruned,
		"a node sees its own backups":      own,
		"a node's quota":                   quota,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, open(t))
		})
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func backup(content, path string, minutes int) filebucket.Backup {
	return filebucket.Backup{
		Algorithm: "md5", Sum: "d41d8cd98f00b204e9800998ecf8427e"[:28] + content, Blob: fleet.DigestOf([]byte(content)),
		Size: int64(len(content)), Node: "a.example", Path: path, At: start.Add(time.Duration(minutes) * time.Minute),
	}
}

func save(t *testing.T, s filebucket.Store, rows ...filebucket.Backup) {
	t.Helper()
	for _, b := range rows {
		if err := s.SaveBackup(t.Context(), b, filebucket.Quota{}); err != nil {
			t.Fatal(err)
		}
	}
}

func list(t *testing.T, s filebucket.Store, from, to time.Time, limit int, want ...filebucket.Backup) {
	t.Helper()
	got, err := s.Backups(t.Context(), "a.example", from, to, limit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("backups (-want +got):\n%s", diff)
	}
}

func blobs(t *testing.T, s filebucket.Store) {
	a := backup("aaaa", "/a", 0)
	other := a
	other.Algorithm, other.Sum = "sha256", string(a.Blob)
	save(t, s, a, other)
	for _, b := range []filebucket.Backup{a, other} {
		blob, size, err := s.Blob(t.Context(), b.Node, b.Algorithm, b.Sum)
		if err != nil || blob != a.Blob || size != 4 {
			t.Errorf("blob of %s: %s, %d, %v", b.Sum, blob, size, err)
		}
	}
	_, _, err := s.Blob(t.Context(), "", "md5", string(a.Blob))
	if fault.Of(err) != fault.NotFound {
		t.Errorf("unknown checksum: %v, want not_found", err)
	}
	all, err := s.Blobs(t.Context())
	if err != nil || len(all) != 1 || all[0] != a.Blob {
		t.Errorf("blobs: %v, %v, want one", all, err)
	}
}

func repeated(t *testing.T, s filebucket.Store) {
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

func listed(t *testing.T, s filebucket.Store) {
	a, b, c, other := backup("aaaa", "/a", 0), backup("bbbb", "/a", 1), backup("cccc", "/c", 2), backup("dddd", "/d", 3)
	other.Node = "b.example"
	save(t, s, b, a, c, other)
	list(t, s, time.Time{}, time.Time{}, 10, c, b, a)
	list(t, s, time.Time{}, time.Time{}, 2, c, b)
	list(t, s, b.At, time.Time{}, 10, c, b)
	list(t, s, time.Time{}, b.At, 10, b, a)
	list(t, s, b.At.Add(time.Second), b.At.Add(2*time.Second), 10)
}

func pruned(t *testing.T, s filebucket.Store) {
	a, b := backup("aaaa", "/a", 0), backup("bbbb", "/a", 1)
	save(t, s, a, b)
	count, err := s.PruneBackups(t.Context(), b.At)
	if err != nil || count != 1 {
		t.Errorf("pruned %d, %v, want 1", count, err)
	}
	list(t, s, time.Time{}, time.Time{}, 10, b)
	if _, _, err := s.Blob(t.Context(), "", a.Algorithm, a.Sum); fault.Of(err) != fault.NotFound {
		t.Errorf("a pruned checksum: %v, want not_found", err)
	}
}

func own(t *testing.T, s filebucket.Store) {
	a, other := backup("aaaa", "/a", 0), backup("bbbb", "/b", 1)
	other.Node = "b.example"
	save(t, s, a, other)
	for _, test := range []struct {
		node fleet.Certname
		of   filebucket.Backup
		want fault.Kind
	}{{"a.example", a, 0}, {"a.example", other, fault.NotFound}, {"b.example", a, fault.NotFound}, {"b.example", other, 0}, {"", a, 0}, {"", other, 0}} {
		blob, _, err := s.Blob(t.Context(), test.node, test.of.Algorithm, test.of.Sum)
		if test.want == 0 && (err != nil || blob != test.of.Blob) || test.want != 0 && fault.Of(err) != test.want {
			t.Errorf("%q asks for the backup of %s: %s, %v", test.node, test.of.Node, blob, err)
		}
	}
	both := other
	both.Node = a.Node
	save(t, s, both) // it has proved that it has the content
	if _, _, err := s.Blob(t.Context(), a.Node, other.Algorithm, other.Sum); err != nil {
		t.Errorf("a content that two nodes backed up: %v", err)
	}
}

func quota(t *testing.T, s filebucket.Store) {
	admits := filebucket.Quota{Files: 3, Bytes: 8}
	try := func(b filebucket.Backup, want string) {
		t.Helper()
		err := s.SaveBackup(t.Context(), b, admits)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s of %s is refused: %v", b.Path, b.Node, err)
		case want != "" && (!errors.Is(err, filebucket.ErrFull) || fault.Of(err) != fault.Conflict || !strings.Contains(fault.Detail(err), want)):
			t.Errorf("%s of %s: %v, want a refusal with %q", b.Path, b.Node, err, want)
		}
	}
	a, b := backup("aaaa", "/a", 0), backup("bbbb", "/b", 1)
	try(a, "")
	try(b, "")
	try(backup("cccc", "/c", 2), "a.example keeps 8 bytes of backed-up files; with 4 more it would have more than the 8 that a node may keep "+
		"(setting backup_bytes_per_node)")
	try(backup("aaaa", "/again", 3), "") // the content is kept already
	try(backup("aaaa", "/fourth", 4), "a.example keeps 3 backed-up files, and a node may keep 3 (setting backup_files_per_node)")
	try(backup("aaaa", "/a", 5), "") // a repeated one
	other := backup("aaaa", "/a", 6)
	other.Node = "b.example"
	try(other, "") // has a quota of its own
	for node, want := range map[fleet.Certname]filebucket.Use{"a.example": {Files: 3, Bytes: 8}, "b.example": {Files: 1, Bytes: 4}, "c.example": {}} {
		if use, err := s.BackupUse(t.Context(), node); err != nil || use != want {
			t.Errorf("%s keeps %+v, %v, want %+v", node, use, err, want)
		}
	}
	if _, err := s.PruneBackups(t.Context(), b.At.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	try(backup("cccc", "/c", 7), "") // room was made
}
