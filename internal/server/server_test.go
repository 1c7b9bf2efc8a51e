package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/hook"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

func TestDefaultsAreGood(t *testing.T) {
	t.Parallel()
	if err := Default().Check(); err != nil {
		t.Error(err)
	}
}

// The README says how often catalogs are compared with those of plain Puppet: as often as they are unless somebody sets something else.
func TestTheReadmeSaysHowOftenCatalogsAreCompared(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	share, err := shareOf(Default().VerifyShare)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("1 of %.0f compilations, and after each deploy one node for each of %d sets of classes, are compared with what plain Puppet gives",
		1/share, Default().VerifyAfterDeploy)
	if !strings.Contains(string(text), want) {
		t.Errorf("the README does not say: %s", want)
	}
}

func TestEverySettingHasAKeyAndHelp(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[Config]().Fields() {
		if field.Tag.Get("koanf") == "" || field.Tag.Get("help") == "" {
			t.Errorf("%s has no key or no help", field.Name)
		}
	}
}

func TestCheckNamesTheSetting(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*Config){
		"setting data":              func(c *Config) { c.Data = "" },
		"setting listen":            func(c *Config) { c.Listen = "8140" },
		"setting database":          func(c *Config) { c.Database = "mysql://x" },
		"setting ca_key_type":       func(c *Config) { c.CAKeyType = "rsa-512" },
		"setting autosign:":         func(c *Config) { c.Autosign = "yes" },
		"setting autosign_list":     func(c *Config) { c.Autosign = "list" },
		"setting log_level":         func(c *Config) { c.LogLevel = "loud" },
		"setting log_format":        func(c *Config) { c.LogFormat = "xml" },
		"setting broker_listen":     func(c *Config) { c.BrokerListen = "8142" },
		"setting rbac_listen":       func(c *Config) { c.RBACListen = "4433" },
		"setting broker_max_con":    func(c *Config) { c.BrokerMaxConnections = -1 },
		"setting broker_max_mess":   func(c *Config) { c.BrokerMaxMessageBytes = 0 },
		"setting broker_queue":      func(c *Config) { c.BrokerQueueBytes = -1 },
		"setting broker_idle":       func(c *Config) { c.BrokerIdleTimeout = 360 },
		"setting compile_timeout":   func(c *Config) { c.CompileTimeout = 0 },
		"setting compile_workers":   func(c *Config) { c.CompileWorkers = -1 },
		"setting report_retention":  func(c *Config) { c.ReportRetention = -time.Hour },
		"setting version_retention": func(c *Config) { c.VersionRetention = 90 },
		"setting compile_patience":  func(c *Config) { c.CompilePatience = 30 }, // "compile_patience: 30" in a file
		"setting puppetdb_clients":  func(c *Config) { c.PuppetDBClients = []string{"ps.example", "No Name"} },
		"setting crl_lifetime":      func(c *Config) { c.CRLLifetime = time.Hour },
		"setting request_ttl":       func(c *Config) { c.RequestTTL = 30 },
		"setting max_requests:":     func(c *Config) { c.MaxRequests = 0 },
		"setting node_ttl":          func(c *Config) { c.NodeTTL = 7 },
		"setting node_purge_ttl":    func(c *Config) { c.NodePurgeTTL = -time.Hour },
		"setting job_timeout":       func(c *Config) { c.JobTimeout = 8 * 24 * time.Hour },
		"setting report_detail_ret": func(c *Config) { c.ReportDetailRetention = c.ReportRetention },
		"setting preview_retention": func(c *Config) { c.PreviewRetention = 90 },
		"setting job_retention":     func(c *Config) { c.JobRetention = 90 },
		"setting max_load":          func(c *Config) { c.MaxLoad = -1 },
		"setting idle_load":         func(c *Config) { c.IdleLoad = -1 },
		"setting trusted_external":  func(c *Config) { c.TrustedExternalCommand = "external.sh" },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := Default()
			spoil(&c)
			if err := c.Check(); fault.Of(err) != fault.Invalid || err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want Invalid beginning with %q", err, want)
			}
		})
	}
}

func TestReloadTakesOnlyWhatMayChange(t *testing.T) {
	t.Parallel()
	old, fresh := Default(), Default()
	fresh.Autosign, fresh.Listen, fresh.LogLevel = "all", ":9", "debug"
	applied, waiting := merge(old, fresh)
	if applied.Autosign != "all" || applied.LogLevel != "debug" || applied.Listen != old.Listen {
		t.Errorf("applied %+v", applied)
	}
	if diff := cmp.Diff([]string{"listen"}, waiting); diff != "" {
		t.Errorf("what needs a restart (-want +got):\n%s", diff)
	}
}

func TestASecondServerIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	first, err := openDataDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(path); fault.Of(err) != fault.Conflict || !strings.Contains(err.Error(), "another server (process ") {
		t.Errorf("got %v, want a Conflict that names the process", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	second, err := openDataDir(path)
	if err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	_ = second.close()
}

func TestDataDirectoriesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open, file := filepath.Join(dir, "open"), filepath.Join(dir, "file")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{open: "chmod 700", file: "cannot be used", filepath.Join(file, "below"): "cannot be used"} {
		if _, err := openDataDir(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestTheTokenIsMadeOnce(t *testing.T) {
	t.Parallel()
	data, err := openDataDir(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = data.close() }()
	first, err := data.token()
	if err != nil {
		t.Fatal(err)
	}
	second, err := data.token()
	if err != nil || second != first {
		t.Errorf("the token changed: %v", err)
	}
	if info, err := os.Stat(data.join(TokenFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file has mode %v, %v", info.Mode(), err)
	}
}

// Strangers make the autosign program run; the nodes' runs must not wait for it.
func TestAutosignDoesNotHoldUpTrustedData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := Default()
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
	for want, spoil := range map[string]func(*Config){
		"setting autosign:":                func(c *Config) { c.Autosign = "/nowhere/sign" },
		"setting external_node_classifier": func(c *Config) { c.ExternalNodeClassifier = "/nowhere/classify" },
		"setting trusted_external_command": func(c *Config) { c.TrustedExternalCommand = "/nowhere/external" },
	} {
		c := Default()
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
	c := Default()
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
	c := Default()
	c.LogLevel = "error"
	log := newLogger(c, &out)
	log.Info("quiet")
	log.set("info")
	log.Info("loud")
	if text := out.String(); strings.Contains(text, "quiet") || !strings.Contains(text, "loud") {
		t.Errorf("the log says %q", text)
	}
}
