package filemgr

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
)

// ask does an action: its results, or why it was aborted.
func ask(t *testing.T, action, input string) (results map[string]any, why string) {
	t.Helper()
	return builtintest.Fields(t, Module(), action, input)
}

func in(path string) string { return `{"file":"` + path + `"}` }

// openDir makes a directory that every user may enter, as all above it are.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatal(name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// What status says is what stat and the checksum programs say.
func TestStatusIsThatOfStat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "file"), "hello\n", 0o640)
	if err := errors.Join(os.Symlink(file, dir+"/link"), unix.Mkfifo(dir+"/fifo", 0o600),
		os.Chtimes(file, unixTime(1000000000), unixTime(1200000000))); err != nil {
		t.Fatal(err)
	}
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", dir+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	types := map[string]string{file: "file", dir: "directory", dir + "/link": "symlink", dir + "/fifo": "fifo", dir + "/socket": "socket", "/dev/null": "chardev"}
	for path, kind := range types {
		got, _ := ask(t, "status", in(path))
		var said string
		for _, field := range []string{"size", "uid", "gid", "mtime_seconds", "ctime_seconds"} {
			said += fmt.Sprintf("%.0f ", got[field])
		}
		said += fmt.Sprint(got["mode"])
		fields := strings.Fields(output(t, "stat", "-c", "%s %u %g %Y %Z %f", path))
		var raw uint32
		if _, err := fmt.Sscanf(fields[5], "%x", &raw); err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(fields[:5], " ") + fmt.Sprintf(" %o", raw); said != want || got["type"] != kind || got["present"] != 1.0 ||
			got["output"] != "present" || got["name"] != path {
			t.Errorf("%s: %v, stat has %s", path, got, want)
		}
		if path == file {
			if got["md5"] != strings.Fields(output(t, "md5sum", path))[0] || got["sha256"] != strings.Fields(output(t, "sha256sum", path))[0] {
				t.Errorf("checksums %v", got)
			}
			if got["atime_seconds"] != 1000000000.0 || got["mtime_age"].(float64) < 500000000 || got["mtime"] != unixTime(1200000000).Format("2006-01-02 15:04:05") {
				t.Errorf("times %v", got)
			}
		} else if got["md5"] != nil {
			t.Errorf("%s has a checksum", path)
		}
	}
	for _, path := range []string{dir + "/nothing", file + "/below"} {
		got, _ := ask(t, "status", in(path))
		if diff := cmp.Diff(map[string]any{"name": path, "output": "absent", "present": 0.0}, got); diff != "" {
			t.Error(diff)
		}
	}
	fields, err := Data()(t.Context(), file)
	if s, ok := fields.(Status); err != nil || !ok || s.Present != 1 || s.Type != "file" {
		t.Errorf("%+v, %v", fields, err)
	}
}

func TestLargeFilesHaveNoChecksumUnlessItIsAskedFor(t *testing.T) {
	t.Parallel()
	path := write(t, filepath.Join(t.TempDir(), "large"), "", 0o600)
	if err := os.Truncate(path, maxSummed+1); err != nil {
		t.Fatal(err)
	}
	if got, _ := ask(t, "status", in(path)); got["md5"] != nil || got["size"] != maxSummed+1.0 {
		t.Errorf("%v", got)
	}
	for kind, program := range map[string]string{"sha256": "sha256sum", "md5": "md5sum", "sha512": "sha512sum"} {
		got, why := ask(t, "checksum", `{"file":"`+path+`","type":"`+kind+`"}`)
		if got["checksum"] != strings.Fields(output(t, program, path))[0] || why != "" {
			t.Errorf("%s: %v, %s", kind, got, why)
		}
	}
	if got, _ := ask(t, "checksum", in(path)); got["type"] != "sha256" {
		t.Errorf("%v", got)
	}
	for path, want := range map[string]string{"/dev/zero": "it is no regular file", "/nothing": "no such file or directory", "/": "it is no regular file"} {
		if _, why := ask(t, "checksum", in(path)); why != "there is no checksum of "+path+": "+want {
			t.Error(why)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/b", "xy", 0o600)
	if err := os.Mkdir(dir+"/a", 0o750); err != nil {
		t.Fatal(err)
	}
	want := `[{"gid":%d,"mode":"40750","mtime_seconds":%s,"name":"a","size":%s,"type":"directory","uid":%d},{"gid":%d,"mode":"100600","mtime_seconds":%s,"name":"b","size":2,"type":"file","uid":%d}]`
	uid, gid := os.Getuid(), os.Getgid()
	want = fmt.Sprintf(want, gid, output(t, "stat", "-c", "%Y", dir+"/a"), output(t, "stat", "-c", "%s", dir+"/a"), uid, gid,
		output(t, "stat", "-c", "%Y", dir+"/b"), uid)
	for action, input := range map[string]string{"list": in(dir), "status": `{"file":"` + dir + `","dirlist":true}`} {
		got, _ := ask(t, action, input)
		if text, _ := json.Marshal(got["dir_listing"]); string(text) != want {
			t.Errorf("%s: %s, not %s", action, text, want)
		}
	}
	for i := range maxEntries {
		write(t, fmt.Sprintf("%s/f%04d", dir, i), "", 0o600)
	}
	if got, _ := ask(t, "list", in(dir)); len(got["dir_listing"].([]any)) != maxEntries || got["cut"] != true {
		t.Errorf("%d entries, cut %v", len(got["dir_listing"].([]any)), got["cut"])
	}
	if _, why := ask(t, "list", in(dir+"/b")); why != dir+"/b cannot be listed: not a directory" {
		t.Error(why)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	text := strings.Repeat("aä€😀\n", 20000)
	path := write(t, dir+"/text", text, 0o644)
	var all strings.Builder
	for offset := 0; offset < len(text); {
		got, why := ask(t, "read", fmt.Sprintf(`{"file":%q,"offset":%d,"bytes":999}`, path, offset))
		piece, ok := got["text"].(string)
		if !ok || why != "" || got["size"] != float64(len(text)) || int(got["next"].(float64)) != offset+len(piece) {
			t.Fatalf("at %d: %v, %s", offset, got, why)
		}
		all.WriteString(piece)
		offset = int(got["next"].(float64))
	}
	if all.String() != text {
		t.Error("the pieces are another text")
	}
	if got, _ := ask(t, "read", in(path)); len(got["text"].(string)) > maxPart || len(got["text"].(string)) < maxPart-4 {
		t.Errorf("%d bytes", len(got["text"].(string)))
	}
	binary := write(t, dir+"/binary", "a\xff\xfe\x00", 0o644)
	if got, _ := ask(t, "read", in(binary)); got["base64"] != base64.StdEncoding.EncodeToString([]byte("a\xff\xfe\x00")) ||
		got["text"] != nil || got["next"] != 4.0 {
		t.Errorf("%v", got)
	}
	for _, broken := range []string{"a\xe2\x82", "\xe2", "\xff"} { // a character that the file ends in
		if got, _ := ask(t, "read", in(write(t, dir+"/broken", broken, 0o644))); got["base64"] != base64.StdEncoding.EncodeToString([]byte(broken)) {
			t.Errorf("%q: %v", broken, got)
		}
	}
	if got, _ := ask(t, "read", `{"file":"`+path+`","offset":9999999}`); got["text"] != "" || got["next"] != 9999999.0 {
		t.Errorf("behind the end: %v", got)
	}
}

// The agent is root: it gives only what every user may read.
func TestReadGivesOnlyWhatAllMayRead(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	closedDir := filepath.Join(dir, "closed")
	if err := errors.Join(os.Mkdir(closedDir, 0o750), unix.Mkfifo(dir+"/fifo", 0o644), unix.Chmod(dir+"/fifo", 0o644)); err != nil {
		t.Fatal(err)
	}
	secret := write(t, dir+"/secret", "s", 0o640)
	inside := write(t, closedDir+"/x", "s", 0o644)
	if err := errors.Join(os.Symlink(secret, dir+"/link"), os.Symlink(inside, dir+"/way")); err != nil {
		t.Fatal(err)
	}
	for path, at := range map[string]string{secret: secret, dir + "/link": secret, inside: closedDir, dir + "/way": closedDir} {
		if got, why := ask(t, "read", in(path)); why != path+" is not read: "+at+" is closed to other users, and this action gives only what all may read" {
			t.Errorf("%v, %s", got, why)
		}
	}
	for path, want := range map[string]string{
		dir + "/nothing": "no such file or directory", dir + "/fifo": "it is no regular file", dir: "it is no regular file",
	} {
		if _, why := ask(t, "read", in(path)); why != path+" cannot be read: "+want {
			t.Error(why)
		}
	}
}

func TestTouchAndRemove(t *testing.T) {
	t.Parallel()
	if off := Module().Off; !slices.Equal(off, []string{"touch", "remove"}) {
		t.Errorf("off are %q", off)
	}
	if _, why := ask(t, "touch", in("x")); why != `field file: it must match the regular expression ^(/|[A-Za-z]:[\\/])` {
		t.Error(why)
	}
	path := filepath.Join(t.TempDir(), "x")
	for _, step := range []struct{ action, want string }{
		{"touch", "the file was made"}, {"touch", "its times were set to now"}, {"remove", "it was removed"}, {"remove", "it is not there"},
	} {
		if step.want == "its times were set to now" {
			if err := os.Chtimes(path, unixTime(1), unixTime(1)); err != nil {
				t.Fatal(err)
			}
		}
		if got, why := ask(t, step.action, in(path)); got["output"] != step.want || why != "" {
			t.Errorf("%s: %v, %s", step.action, got, why)
		}
		if info, err := os.Stat(path); (step.action == "touch") != (err == nil) || err == nil && info.ModTime().Unix() < 1000 {
			t.Errorf("after %s: %v, %v", step.action, info, err)
		}
	}
	if err := os.MkdirAll(path+"/below", 0o750); err != nil {
		t.Fatal(err)
	}
	if _, why := ask(t, "remove", in(path)); why != path+" was not removed: directory not empty" {
		t.Error(why)
	}
	if _, why := ask(t, "touch", in(path+"/no/such")); why != path+"/no/such was not touched: no such file or directory" {
		t.Error(why)
	}
}

func FuzzGiven(f *testing.F) {
	f.Add([]byte("aä€😀"), 5)
	f.Add([]byte{0xe2, 0x82}, 1)
	// The pieces are the whole, whatever is in it and however small they are.
	f.Fuzz(func(t *testing.T, content []byte, most int) {
		most = max(1, most%100)
		var whole []byte
		for offset := 0; offset < len(content); {
			p := given(content[offset:min(offset+most, len(content))], int64(offset), int64(len(content)))
			if p.Next <= int64(offset) {
				t.Fatalf("%q: no end at %d", content, offset)
			}
			offset = int(p.Next)
			if p.Text != nil {
				whole = append(whole, *p.Text...)
				continue
			}
			piece, err := base64.StdEncoding.DecodeString(*p.Base64)
			if err != nil {
				t.Fatal(err)
			}
			whole = append(whole, piece...)
		}
		if !slices.Equal(whole, content) {
			t.Errorf("%q became %q", content, whole)
		}
	})
}

func unixTime(seconds int64) time.Time { return time.Unix(seconds, 0) }
