package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/hook"
	"github.com/tutti-project/tutti/internal/program/programtest"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// Strangers make the autosign program run; the nodes' runs must not wait for it.
func TestAutosignDoesNotHoldUpTrustedData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings.Default()
	c.Data, c.Autosign, c.TrustedExternalCommand = filepath.Join(dir, "data"), filepath.Join(dir, "sign"), filepath.Join(dir, "external")
	hung := filepath.Join(dir, "hung") // whoever opens it waits
	if err := syscall.Mkfifo(hung, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{c.Autosign: "#!/bin/sh\nread x < " + hung + "\n", c.TrustedExternalCommand: "#!/bin/sh\necho '{\"rack\":7}'\n"} {
		programtest.Write(t, path, text)
	}
	p, err := open(t.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	if p.operator.signers == p.operator.trusters {
		t.Error("they wait for the same turns")
	}
	patient := hook.Config{Timeout: 10 * time.Minute, Log: slog.New(slog.DiscardHandler)} // which counts while one waits for a turn, too
	p.operator.signers, p.operator.trusters = hook.New(patient), hook.New(patient)
	var strangers sync.WaitGroup
	var ended atomic.Int64
	ctx, leave := context.WithCancel(t.Context())
	defer strangers.Wait()
	defer leave()
	for range 32 {
		policy, err := p.operator.autosignPolicy(c)
		if err != nil {
			t.Fatal(err)
		}
		strangers.Go(func() {
			_, _ = policy.Decide(ctx, "web-1", nil)
			ended.Add(1)
		})
	}
	program, err := p.operator.trusters.TrustedExternal(c.TrustedExternalCommand)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := program.External(t.Context(), "web-1"); err != nil || string(got) != `{"rack":7}` {
		t.Errorf("got %s, %v", got, err)
	}
	if n := ended.Load(); n > 0 {
		t.Errorf("%d of the strangers' programs came to their end first", n)
	}
}

func TestProgramsThatCannotRunAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*settings.Config){
		"setting autosign:":                func(c *settings.Config) { c.Autosign = "/nowhere/sign" },
		"setting external_node_classifier": func(c *settings.Config) { c.ExternalNodeClassifier = "/nowhere/classify" },
		"setting trusted_external_command": func(c *settings.Config) { c.TrustedExternalCommand = "/nowhere/external" },
	} {
		c := settings.Default()
		c.Data = filepath.Join(t.TempDir(), "data")
		spoil(&c)
		p, err := open(t.Context(), c, newLogger(c, io.Discard))
		if err == nil || fault.Of(err) != fault.Invalid || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, %v, want %q", p, err, want)
		}
	}
}

// Whoever starts a server has no log yet: the error itself must say why, but
// never with which password.
func TestADatabaseThatCannotBeReachedIsExplained(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data, c.Database = filepath.Join(t.TempDir(), "data"), "postgres://tutti:sekret@127.0.0.1:1/tutti"
	_, err := open(t.Context(), c, newLogger(c, io.Discard))
	detail := fault.Detail(err)
	if fault.Of(err) != fault.Unavailable || !strings.Contains(detail, "connection refused") || strings.Contains(detail, "\n") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "sekret") {
		t.Error("the error tells the password")
	}
}

func TestTheLogFollowsItsLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := settings.Default()
	c.LogLevel = "error"
	log := newLogger(c, &out)
	log.Info("quiet")
	log.set("info")
	log.Info("loud")
	if text := out.String(); strings.Contains(text, "quiet") || !strings.Contains(text, "loud") {
		t.Errorf("the log says %q", text)
	}
}
