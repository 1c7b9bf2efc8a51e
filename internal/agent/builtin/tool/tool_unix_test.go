//go:build unix

package tool_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
	"github.com/tutti-project/tutti/internal/fault"
)

// program writes a shell script into a directory of its own.
func program(t *testing.T, name, text string) tool.Box {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return tool.Box{Dirs: []string{dir}}
}

func TestRun(t *testing.T) {
	t.Setenv("TUTTI_PRIVATE", "agent")
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	b := program(t, "speak", `printf '%s|' "$@"; echo "$LC_ALL $EXTRA ${TUTTI_PRIVATE:-nothing}"; pwd; printf 'no\n  way\n' >&2; exit 3`)
	for _, c := range []struct {
		command tool.Command
		out     string
	}{
		{tool.Command{Name: "speak", Args: []string{"a b", "$(id)"}, Env: []string{"EXTRA=x"}}, "a b|$(id)|C x agent\n/\n"},
		{tool.Command{Name: "speak", Clean: true, Env: []string{"LC_ALL=C.UTF-8"}}, "|C.UTF-8  nothing\n/\n"},
	} {
		done, err := b.Run(t.Context(), c.command)
		if err != nil || done.Exit != 3 || done.Stdout != c.out || done.Stderr != "no\n  way\n" || done.Cut || done.Why() != "no way" {
			t.Errorf("%+v: %+v, %v", c.command, done, err)
		}
		if done.Output() != c.out+"no\n  way\n" {
			t.Errorf("output %q", done.Output())
		}
	}
	if _, err := b.Run(t.Context(), tool.Command{Name: "sing"}); fault.Of(err) != fault.NotFound || fault.Detail(err) != "this node has no program sing" {
		t.Error(err)
	}
	if path := (tool.Box{}).Find("sh"); !filepath.IsAbs(path) {
		t.Errorf("sh is %q", path)
	}
}

func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	b := program(t, "speak", `head -c 3000000 /dev/zero; head -c 3000000 /dev/zero | tr '\0' 'x' >&2`)
	done, err := b.Run(t.Context(), tool.Command{Name: "speak"})
	if err != nil || !done.Cut || len(done.Stderr) != tool.MaxOutputBytes || strings.Count(done.Stdout, "\uFFFD") != tool.MaxOutputBytes ||
		!strings.HasSuffix(done.Output(), "(there is more)") {
		t.Errorf("%d, %d, cut %v, %v", len(done.Stdout), len(done.Stderr), done.Cut, err)
	}
	if why := done.Why(); len(why) != 404 {
		t.Errorf("the reason has %d bytes", len(why))
	}
}

// What a program leaves behind on purpose holds its output open: that must not keep an action.
func TestWhatIsLeftBehindIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := program(t, "daemonize", `sleep 60 & echo $!`)
	done, err := b.Run(t.Context(), tool.Command{Name: "daemonize"})
	if err != nil || done.Exit != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := (tool.Box{}).Run(t.Context(), tool.Command{Name: "kill", Args: []string{strings.TrimSpace(done.Stdout)}}); err != nil {
		t.Error(err)
	}
}

func TestTimeIsBounded(t *testing.T) {
	t.Parallel()
	b := program(t, "wait", `sleep 600 & wait`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Run(ctx, tool.Command{Name: "wait"}); fault.Of(err) != fault.Unavailable || fault.Detail(err) != "wait was ended: its time was over" {
		t.Error(err)
	}
}

// A package manager that is ended half-way leaves half of a package.
func TestAProgramThatGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(dir+"/gate", 0o600); err != nil {
		t.Fatal(err)
	}
	b := program(t, "install", `echo begun; cat `+dir+`/gate; echo more >&2; touch `+dir+`/done; exit 4`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := b.Run(ctx, tool.Command{Name: "install", GoesOn: true}); fault.Detail(err) != "install takes longer than the action may; it goes on by itself" {
		t.Error(err)
	}
	if err := os.WriteFile(dir+"/gate", []byte("x"), 0o600); err != nil { // returns when the program reads it
		t.Fatal(err)
	}
	for _, err := os.Stat(dir + "/done"); err != nil; _, err = os.Stat(dir + "/done") {
		if t.Context().Err() != nil {
			t.Fatal("it did not go on")
		}
		<-time.After(time.Millisecond)
	}
	if err := os.WriteFile(dir+"/plain", []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	b = program(t, "install", `echo begun; cat `+dir+`/plain; head -c 3000000 /dev/zero | tr '\0' x >&2; exit 4`)
	done, err := b.Run(t.Context(), tool.Command{Name: "install", GoesOn: true})
	if err != nil || done.Exit != 4 || done.Stdout != "begun\ny" || len(done.Stderr) != tool.MaxOutputBytes || !done.Cut {
		t.Errorf("%d %q %d %v, %v", done.Exit, done.Stdout, len(done.Stderr), done.Cut, err)
	}
}
