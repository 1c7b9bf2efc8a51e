package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestAFileBringsEverythingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	target := filepath.Join(t.TempDir(), "one.backup")
	r := w.create(target)
	if r.Rows != 40_000 || r.Tables != 2 || r.Files != 6 || r.Blobs != 2 || r.NewBlobs != 2 {
		t.Errorf("%+v", r)
	}
	if text, err := os.ReadFile(target); err != nil || bytes.Contains(text, []byte("the key")) || len(text) > 3<<20 {
		t.Errorf("the archive is readable, or is not packed: %d bytes, %v", len(text), err)
	}
	got, err := Verify(t.Context(), target, "", w.key, nil)
	if err != nil || got.Rows != r.Rows || got.Blobs != r.Blobs || got.ID != r.ID {
		t.Errorf("verified %+v, %v", got, err)
	}
	w.restore(target, "")
	if _, err := Create(t.Context(), w.source, target, w.lock); fault.Of(err) != fault.Conflict {
		t.Errorf("a file is written over: %v", err)
	}
}

func TestADirectoryKeepsEachBlobOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lock, w.key = Lock{passphrase: "correct horse", work: 10}, KeyOf("correct horse")
	dir := filepath.Join(t.TempDir(), "backups") + "/"
	first := w.create(dir)
	if err := os.WriteFile(filepath.Join(w.source.Dir, "seal.key"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := w.blob("fresh")
	w.source.Now = w.source.Now.Add(time.Hour)
	before := modified(t, dir)
	second := w.create(dir)
	if first.NewBlobs != 2 || second.NewBlobs != 1 || second.Blobs != 3 {
		t.Errorf("first %+v\nsecond %+v", first, second)
	}
	for path, at := range before {
		if !modified(t, dir)[path].Equal(at) {
			t.Errorf("%s is written again", path)
		}
	}
	list, err := List(dir)
	if err != nil || len(list) != 2 || list[0].ID != first.ID || !list[1].Made.Equal(w.source.Now) {
		t.Errorf("list %+v, %v", list, err)
	}
	for _, id := range []string{"", first.ID, second.ID} {
		if _, err := Verify(t.Context(), dir, id, w.key, nil); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(filepath.Join(w.source.Dir, "seal.key"), []byte("seal"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.source.Now = w.source.Now.Add(time.Hour)
	w.create(dir)
	w.restore(dir, "")

	w.lock.passphrase = "wrong horse"
	if _, err := Create(t.Context(), w.source, dir, w.lock); fault.Of(err) != fault.Denied {
		t.Errorf("with another passphrase: %v", err)
	}
	if _, err := Verify(t.Context(), dir, "", KeyOf("wrong horse"), nil); fault.Of(err) != fault.Denied {
		t.Errorf("with another passphrase: %v", err)
	}
	if err := os.Remove(blobPath(dir, fresh)); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), dir, first.ID, w.key, nil); err != nil {
		t.Errorf("the first does not need it: %v", err)
	}
	if _, err := Verify(t.Context(), dir, second.ID, w.key, nil); fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), string(fresh)) {
		t.Errorf("a blob is missing: %v", err)
	}
}

func modified(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	_ = filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, entry os.DirEntry, err error) error {
		if info, _ := entry.Info(); err == nil && !entry.IsDir() {
			all[path] = info.ModTime()
		}
		return err
	})
	return all
}

func TestADirectoryHasOneKey(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	dir := t.TempDir()
	w.create(dir)
	for name, lock := range map[string]Lock{"another key": other.lock, "a passphrase": {passphrase: "correct horse", work: 10}} {
		if _, err := Create(t.Context(), w.source, dir, lock); fault.Of(err) != fault.Conflict {
			t.Errorf("with %s: %v", name, err)
		}
	}
	full := t.TempDir()
	put(t, filepath.Join(full, "letter.txt"), "dear")
	if _, err := Create(t.Context(), w.source, full, w.lock); fault.Of(err) != fault.Conflict {
		t.Errorf("among other files: %v", err)
	}
	if _, err := List(full); fault.Of(err) != fault.NotFound {
		t.Errorf("a list of other files: %v", err)
	}
}

// A backup that fails leaves nothing that could be taken for one.
func TestAFailedBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world){
		"the database fails": func(w *world) { w.rows.fails = errors.New("gone") },
		"the blobs cannot be read": func(w *world) {
			w.source.Blobs = func(context.Context) (Blobs, error) { return nil, errors.New("gone") }
		},
		"there is no CA": func(w *world) { _ = os.RemoveAll(filepath.Join(w.source.Dir, "ca")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			spoil(w)
			dir := t.TempDir()
			if _, err := Create(t.Context(), w.source, filepath.Join(dir, "x"), w.lock); err == nil {
				t.Error("it succeeds")
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 0 {
				t.Errorf("it leaves %v", entries)
			}
		})
	}
}

// What a backup leaves in a directory that is killed at any moment is no backup and no obstacle, and the next one clears it away. Two are not made
// at the same time: one would take the other's for that.
func TestADirectoryIsClearedOfKilledBackups(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]Lock{"a key": {}, "a passphrase": {passphrase: "correct horse", work: 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if lock.passphrase != "" {
				w.lock, w.key = lock, KeyOf(lock.passphrase)
			}
			dir := t.TempDir()
			leave := func(names ...string) {
				for _, name := range names {
					put(t, filepath.Join(dir, name), "a par")
				}
			}
			leave("."+layoutFile+".1.unfinished", "."+keyFile+".2.unfinished") // killed before it was a directory of backups
			w.create(dir)
			leave(".20261123T101500Z-1a2b.tutti.3.unfinished", "tmp/"+string(w.blob("more")))
			w.source.Now = w.source.Now.Add(time.Hour)
			made := w.create(dir)
			list, err := List(dir)
			if err != nil || len(list) != 2 || list[1].ID != made.ID {
				t.Errorf("list %+v, %v", list, err)
			}
			entries, _ := os.ReadDir(dir)
			for _, entry := range entries {
				if isUnfinished(entry.Name()) {
					t.Errorf("%s is still there", entry.Name())
				}
			}
			if _, err := Verify(t.Context(), dir, "", w.key, nil); err != nil {
				t.Error(err)
			}
			other, err := openDirectory(dir, w.lock)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Create(t.Context(), w.source, dir, w.lock)
			if fault.Of(err) != fault.Conflict || !strings.Contains(fault.Detail(err), "another backup is being made") {
				t.Errorf("beside another backup: %v", err)
			}
			other.close()
			w.source.Now = w.source.Now.Add(time.Hour)
			w.create(dir)
		})
	}
}

// A damaged blob in the server's store is told, and does not end the backup of the rest.
func TestADamagedBlobIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.blob("damaged")
	path := filepath.Join(w.source.Dir, "blobs", "blobs", string(d[:2]), string(d))
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("DAMAGED"), 0o600)); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "x")
	if r := w.create(target); len(r.Damaged) != 1 || r.Damaged[0] != d || r.Blobs != 2 {
		t.Errorf("%+v", r)
	}
	if r, err := Verify(t.Context(), target, "", w.key, nil); err != nil || len(r.Damaged) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Records are as of a moment in which the CA did not change.
func TestTheMomentIsOneOfTheCA(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	journal := filepath.Join(w.source.Dir, "ca/journal.jsonl")
	w.rows.onBegin = func(n int) {
		if n < 5 { // the CA appends while the moment begins
			put(t, journal, strings.Repeat("x\n", n))
		}
	}
	target := filepath.Join(t.TempDir(), "x")
	w.create(target)
	if w.rows.begun != 5 {
		t.Errorf("the moment began %d times, want 5", w.rows.begun)
	}
	// What is appended later does not belong to it.
	held, err := hold(w.source.Dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	put(t, journal, strings.Repeat("x\n", 9))
	files, err := held.read(w.source.Dir)
	if err != nil || len(files) != 2 || string(files[1].content) != strings.Repeat("x\n", 4) {
		t.Errorf("%q, %v", files, err)
	}
}

func TestARestoreOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "ca", "ca.pem"), "key")
	put(t, filepath.Join(dir, "tutti.db"), "rows")
	for share, want := range map[Share]bool{Everything: false, OnlyCA: false, OnlyRows: false, OnlyBlobs: true} {
		if err := CheckEmpty(dir, share); (err == nil) != want || err != nil && fault.Of(err) != fault.Conflict {
			t.Errorf("%q: %v", share, err)
		}
	}
	if err := CheckEmpty(filepath.Join(dir, "none"), Everything); err != nil {
		t.Error(err)
	}
	// A part does not hide that the whole was not finished, and who begins again is told how.
	if _, err := mark(dir, Everything); err != nil {
		t.Fatal(err)
	}
	if err := CheckEmpty(dir, Everything); !strings.Contains(fault.Detail(err), "did not end") {
		t.Error(err)
	}
	if _, err := mark(dir, OnlyCA); fault.Of(err) != fault.Conflict {
		t.Error(err)
	}
}

func TestASweepWaitsForABackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reading, err := w.source.Blobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(fleet.Digest) bool { return false }
	if _, _, err := w.blobs.Sweep(t.Context(), nothing, time.Now().Add(time.Hour)); fault.Of(err) != fault.Unavailable {
		t.Errorf("a sweep while a backup reads: %v", err)
	}
	if err := reading.Close(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := w.blobs.Sweep(t.Context(), nothing, time.Now().Add(time.Hour)); err != nil || n != 2 {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}

func TestKeysAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := LockWith("short"); fault.Of(err) != fault.Invalid {
		t.Error(err)
	}
	if _, err := LockTo("ssh-rsa AAAA"); fault.Of(err) != fault.Invalid {
		t.Error(err)
	}
	_, err := KeyIn([]byte("AGE-SECRET-KEY-1WRONG"))
	if fault.Of(err) != fault.Invalid || strings.Contains(fmt.Sprint(err), "WRONG") {
		t.Errorf("%v", err)
	}
}
