package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/store/backup"
)

// backupKills is how often a backup and a restore are killed.
const backupKills = 5

// A backup and a restore are killed at random moments, as by a machine that goes down. Whatever is listed as a backup is whole, the next
// backup goes on with what is there, and the directory keeps nothing of those that were killed. A server starts on no half of a restore;
// begun again, it gives what one gives that nobody disturbed.
func TestKilledBackupsAndRestores(t *testing.T) {
	begin(t, 20)
	s, dir := startServer(t, "--autosign", "all"), t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	k := killing{server: s, random: random, dir: dir, key: filepath.Join(dir, "key"), backups: filepath.Join(dir, "backups") + "/"}
	k.deployContent(t)
	revoked := enrol(t, s, "revoked.test")
	s.tutti(t, "ca", "revoke", revoked.name)
	k.public = strings.TrimSpace(s.tutti(t, "backup", "key", k.key))

	k.killBackups(t)
	made := decode[backup.Result](t, s, "backup", "create", k.backups, "--recipient", k.public)
	if read := k.whole(t, made.ID); read.Rows != made.Rows || read.Blobs != made.Blobs {
		t.Errorf("the backup has %d rows and %d blobs, and %d and %d are read", made.Rows, made.Blobs, read.Rows, read.Blobs)
	}
	if left := unfinished(t, k.backups); len(left) > 0 {
		t.Errorf("of the backups that were killed this is left: %v", left)
	}
	k.killRestores(t, made)
}

// killing is a server whose backups and restores are killed.
type killing struct {
	server               *server
	random               *rand.Rand
	dir                  string
	key, public, backups string
}

// deployContent deploys files enough that a backup takes a moment.
func (k killing) deployContent(t *testing.T) {
	t.Helper()
	files := filepath.Join(k.dir, "control", "modules", "content", "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		text := make([]byte, 20_000)
		for at := range text {
			text[at] = byte(k.random.Uint32())
		}
		if err := os.WriteFile(filepath.Join(files, fmt.Sprintf("%d.bin", i)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.server.tutti(t, "code", "deploy", "--no-check", "production", filepath.Join(k.dir, "control"))
}

// killed runs a command and kills it after a part of the time that it takes, unless it has ended before. It returns whether it succeeded.
func (k killing) killed(t *testing.T, takes time.Duration, args ...string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(cleanEnv(), "TUTTI_DATA="+k.server.data)
	var err strings.Builder
	cmd.Stderr = &err
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(k.random.Int64N(int64(takes))), func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code > 0 { // killed: -1
		t.Fatalf("tutti %s: exit code %d\n%s", strings.Join(args, " "), code, err.String())
	}
	return cmd.ProcessState.Success()
}

// killBackups kills backups into a directory, each after another part of the time that one takes that nobody disturbs.
func (k killing) killBackups(t *testing.T) {
	t.Helper()
	began := time.Now()
	k.server.tutti(t, "backup", "create", filepath.Join(k.dir, "undisturbed")+"/", "--recipient", k.public)
	takes, succeeded := time.Since(began), 0
	for range backupKills {
		file := filepath.Join(k.dir, "file")
		ended := k.killed(t, takes, "backup", "create", k.backups, "--recipient", k.public)
		if ended {
			succeeded++
		}
		list := k.listed(t)
		if len(list) < succeeded {
			t.Errorf("%d backups succeeded, and %d are listed", succeeded, len(list))
		}
		for _, one := range list {
			k.whole(t, one.ID)
		}
		k.killed(t, takes, "backup", "create", file, "--recipient", k.public)
		if _, err := os.Stat(file); err == nil {
			k.server.tutti(t, "backup", "verify", file, "--identity-file", k.key)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("a backup takes %s; %d of %d were not killed in time", takes.Round(time.Millisecond), succeeded, backupKills)
}

// listed lists the backups that there are; none if the first was killed before it had made the directory.
func (k killing) listed(t *testing.T) []backup.Listed {
	t.Helper()
	list, err := backup.List(k.backups)
	if found, _ := filepath.Glob(filepath.Join(k.backups, "*.tutti")); err != nil && len(found) > 0 {
		t.Fatalf("%v are there, and not listed: %v", found, err)
	}
	return list
}

func (k killing) whole(t *testing.T, id string) backup.Result {
	t.Helper()
	return decode[backup.Result](t, k.server, "backup", "verify", k.backups, "--backup", id, "--identity-file", k.key)
}

// unfinished is what a killed backup may leave in a directory of backups.
func unfinished(t *testing.T, dir string) (left []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, ".") {
			left = append(left, name)
		}
	}
	temporary, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, entry := range temporary {
		left = append(left, "tmp/"+entry.Name())
	}
	return left
}

// killRestores kills restores and begins them again as a server says that refuses to start on what they left.
func (k killing) killRestores(t *testing.T, made backup.Result) {
	t.Helper()
	restore := func(data string) []string {
		return []string{"backup", "restore", k.backups, "--backup", made.ID, "--identity-file", k.key, "--data", data}
	}
	undisturbed, again := newServer(k.dir), newServer(t.TempDir())
	undisturbed.data = filepath.Join(k.dir, "restored")
	began := time.Now()
	undisturbed.tutti(t, restore(undisturbed.data)...)
	takes, cut := time.Since(began), 0
	for range backupKills {
		if k.killed(t, takes, restore(again.data)...) {
			break
		}
		if _, err := os.Stat(filepath.Join(again.data, backup.MarkerFile)); err == nil {
			cut++
			refused(t, again, "a restore into "+again.data+" did not end", "empty the directory and restore again")
			if r := again.try(t, "backup", "create", filepath.Join(k.dir, "of-a-half"), "--recipient", k.public); r.code == 0 {
				t.Error("a half of a server is backed up")
			}
			if r := again.try(t, restore(again.data)...); r.code == 0 || !strings.Contains(r.err, "did not end") {
				t.Errorf("restored over a half: %d %s", r.code, r.err)
			}
		} else if found := contentOf(t, again.data); len(found) > 0 && !slices.Equal(found, contentOf(t, undisturbed.data)) {
			t.Errorf("nothing says that the restore did not end, and this is there: %v", found)
		}
		if err := os.RemoveAll(again.data); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("a restore takes %s; %d left a part", takes.Round(time.Millisecond), cut)
	if _, err := os.Stat(again.data); err != nil {
		again.tutti(t, restore(again.data)...)
	}
	if diff := cmp.Diff(contentOf(t, undisturbed.data), contentOf(t, again.data)); diff != "" {
		t.Errorf("a restore that was begun again (-undisturbed +again):\n%s", diff)
	}
	made.Rows-- // the server that ran: nobody uses what was just restored
	for _, restored := range []*server{undisturbed, again} {
		back := decode[backup.Result](t, restored, "backup", "create", restored.data+".backup", "--recipient", k.public)
		if back.Rows != made.Rows || back.Blobs != made.Blobs || back.Tables != made.Tables {
			t.Errorf("%d rows of %d tables and %d blobs were backed up, and %d of %d and %d were restored", made.Rows, made.Tables,
				made.Blobs, back.Rows, back.Tables, back.Blobs)
		}
	}
	again.startFor(t)
	contains(t, again.tutti(t, "ca", "list", "--state", "revoked"), "revoked.test")
	contains(t, again.tutti(t, "code", "status"), "production")
}

// contentOf is the files of a data directory with their digests, but for those of a process and of the database.
func contentOf(t *testing.T, data string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(data, path)
		if err != nil || entry.Name() == "lock" || strings.HasPrefix(name, "tutti.db") {
			return err
		}
		text, err := os.ReadFile(path)
		sum := sha256.Sum256(text)
		files = append(files, name+" "+hex.EncodeToString(sum[:8]))
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return files
}
