package hook_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/hook"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

var quiet = slog.New(slog.DiscardHandler)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// script writes a program.
func script(t *testing.T, path, body string) string {
	t.Helper()
	return programtest.Write(t, path, "#!/bin/sh\n"+body+"\n")
}

func kind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Fatalf("error = %v, want kind %s", err, want)
	}
}

func TestAutosignProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		want       bool
	}{
		{"reads the request and signs", `grep -q "CERTIFICATE REQUEST" && test "$1" = web1 && test $# = 1`, true},
		{"signs without reading", `exit 0`, true},
		{"refuses", `exit 1`, false},
		{"is talkative", `head -c 3000000 /dev/zero; head -c 100000 /dev/zero >&2`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			policy, err := hook.New(hook.Config{Log: quiet}).Autosign(script(t, t.TempDir()+"/policy", c.body))
			must(t, err)
			request := "-----BEGIN CERTIFICATE REQUEST-----\n" + strings.Repeat("x", 60_000)
			got, err := policy.Decide(t.Context(), "web1", []byte(request))
			must(t, err)
			if got != c.want {
				t.Errorf("signed %t, want %t", got, c.want)
			}
		})
	}
}

func TestProgramsThatCannotBeRun(t *testing.T) {
	t.Parallel()
	runner := hook.New(hook.Config{Log: quiet})
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/plain", nil, 0o600))
	for _, path := range []string{"relative", dir + "/missing", dir + "/plain", dir} {
		_, err := runner.Autosign(path)
		kind(t, err, fault.Invalid)
	}
	for _, path := range []string{"relative", dir + "/missing", dir + "/plain"} {
		_, err := runner.TrustedExternal(path)
		kind(t, err, fault.Invalid)
	}
	broken := programtest.Write(t, filepath.Join(dir, "broken"), "#!/no/such/interpreter\n")
	policy, err := runner.Autosign(broken)
	must(t, err)
	_, err = policy.Decide(t.Context(), "web1", nil)
	kind(t, err, fault.Unavailable)
	killed, err := runner.Autosign(script(t, dir+"/killed", "kill -9 $$"))
	must(t, err)
	_, err = killed.Decide(t.Context(), "web1", nil)
	kind(t, err, fault.Unavailable)
}

// pipe makes a fifo. Reading it ends when nobody holds it open for writing, also if nobody ever did.
func pipe(t *testing.T, path string) *os.File {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestAProgramThatHangsIsKilledWithItsChildren waits for the child's death by the
// pipe that it holds open.
func TestAProgramThatHangsIsKilledWithItsChildren(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := pipe(t, dir+"/fifo")
	path := script(t, dir+"/hang", `(echo alive; exec sleep 1000) > "`+dir+`/fifo" & wait`)
	said := ""
	for timeout := time.Second; said == "" && timeout < 10*time.Minute; timeout *= 2 { // who was killed before it came to life gets more time
		policy, err := hook.New(hook.Config{Timeout: timeout, Log: quiet}).Autosign(path)
		must(t, err)
		_, err = policy.Decide(t.Context(), "web1", nil)
		kind(t, err, fault.Unavailable)
		text, err := io.ReadAll(fifo) // ends when the child does
		must(t, err)
		said = string(text)
	}
	if said != "alive\n" {
		t.Errorf("the child said %q", said)
	}
}

// TestAChildLeftBehindIsKilled has a program that ends well while its child keeps
// its output open.
func TestAChildLeftBehindIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := pipe(t, dir+"/fifo")
	policy, err := hook.New(hook.Config{Timeout: 10 * time.Minute, Log: quiet}).Autosign(
		script(t, dir+"/policy", `exec 3> "`+dir+`/fifo"; echo alive >&3; sleep 1000 & exit 0`))
	must(t, err)
	signed, err := policy.Decide(t.Context(), "web1", nil)
	if !signed || err != nil {
		t.Errorf("signed %t, %v", signed, err)
	}
	text, err := io.ReadAll(fifo) // ends when the child does, which has it from its parent
	if err != nil || string(text) != "alive\n" {
		t.Errorf("the program said %q, %v", text, err)
	}
}

func TestTheServersSecretsStayAtHome(t *testing.T) {
	t.Setenv("TUTTI_SECRET", "hunter2")
	command, err := hook.New(hook.Config{Log: quiet}).TrustedExternal(
		script(t, t.TempDir()+"/env", `if env | grep -q hunter2; then echo '{"leak":true}'; else echo "{\"path\":\"$PATH\"}"; fi`))
	must(t, err)
	got, err := command.External(t.Context(), "web1")
	must(t, err)
	if bytes.Contains(got, []byte("leak")) || !bytes.Contains(got, []byte("/usr/bin")) {
		t.Errorf("the program sees %s", got)
	}
}

func TestTrustedExternal(t *testing.T) {
	t.Parallel()
	runner := hook.New(hook.Config{Log: quiet})
	one, err := runner.TrustedExternal(script(t, t.TempDir()+"/one", `echo "{\"name\": \"$1\", \"n\": 12345678901234567890}"`))
	must(t, err)
	got, err := one.External(t.Context(), "web1")
	must(t, err)
	if want := `{"n":12345678901234567890,"name":"web1"}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}

	dir := t.TempDir()
	script(t, dir+"/cmdb.sh", `echo '{"rack": 7}'`)
	script(t, dir+"/owner", `echo '{"team": "web"}'`)
	must(t, os.WriteFile(dir+"/README", []byte("not a program"), 0o600))
	many, err := runner.TrustedExternal(dir)
	must(t, err)
	got, err = many.External(t.Context(), "web1")
	must(t, err)
	if want := `{"cmdb":{"rack":7},"owner":{"team":"web"}}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	script(t, dir+"/broken", `exit 3`)
	_, err = many.External(t.Context(), "web1")
	kind(t, err, fault.Unavailable)
}

func TestTrustedExternalThatIsNoObject(t *testing.T) {
	t.Parallel()
	runner := hook.New(hook.Config{MaxOutputBytes: 100, Log: quiet})
	for name, body := range map[string]string{
		"text": "echo hello", "list": "echo '[]'", "null": "echo null", "nothing": "true", "cut": `echo '{"a":'`,
		"too much": `echo '{"a":"` + strings.Repeat("x", 200) + `"}'`, "exit": `echo '{}'; exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, err := runner.TrustedExternal(script(t, t.TempDir()+"/x", body))
			must(t, err)
			_, err = command.External(t.Context(), "web1")
			kind(t, err, fault.Unavailable)
		})
	}
}

// TestOnlySoManyAtOnce counts programs by the directories they hold.
func TestOnlySoManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	command, err := hook.New(hook.Config{Timeout: 10 * time.Minute, MaxConcurrent: 1, Log: quiet}).TrustedExternal(
		script(t, dir+"/x", `mkdir "`+dir+`/lock" || exit 1; echo '{"me": '$$'}'; rmdir "`+dir+`/lock"`))
	must(t, err)
	var wait sync.WaitGroup
	for i := range 5 {
		wait.Go(func() {
			got, err := command.External(t.Context(), "web1")
			if err != nil || !json.Valid(got) {
				t.Errorf("run %s: %s, %v", strconv.Itoa(i), got, err)
			}
		})
	}
	wait.Wait()
}
