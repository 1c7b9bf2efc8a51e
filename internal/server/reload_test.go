package server

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server/settings"
)

func TestARefusedReloadChangesNothing(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data, c.Listen = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0"
	p, d := listening(t, c)
	before := serverPEM(t, p)
	for want, spoil := range map[string]func(*settings.Config){
		"setting autosign:":                func(c *settings.Config) { c.Autosign = "/nowhere/sign" },
		"setting autosign_list":            func(c *settings.Config) { c.Autosign, c.AutosignList = "list", []string{"not a name"} },
		"setting trusted_external_command": func(c *settings.Config) { c.TrustedExternalCommand = "/nowhere/external" },
		"setting external_node_classifier": func(c *settings.Config) { c.ExternalNodeClassifier = "/nowhere/classify" },
		"the server name":                  func(c *settings.Config) { c.Autosign, c.DNSAltNames = "all", []string{"a b"} },
	} {
		fresh := c
		fresh.DNSAltNames, fresh.LogLevel, fresh.AccessLog = []string{"more.example.org"}, "debug", false
		spoil(&fresh)
		err := p.reload(t.Context(), d, func() (settings.Config, error) { return fresh, nil })
		if err == nil || fault.Of(err) != fault.Invalid || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if serverPEM(t, p) != before {
			t.Errorf("%s: the server has another certificate", want)
		}
		if now := p.config.Load(); now.LogLevel != c.LogLevel || now.Autosign != c.Autosign || !d.access.Load() || p.log.Enabled(t.Context(), -4) {
			t.Errorf("%s: settings were taken: %+v", want, now)
		}
	}
}

func TestAReloadIsApplied(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data, c.Listen = filepath.Join(t.TempDir(), "data"), "127.0.0.1:0"
	p, d := listening(t, c)
	before := serverPEM(t, p)
	fresh := c
	fresh.DNSAltNames, fresh.AccessLog, fresh.Autosign = []string{"more.example.org"}, false, "all"
	if err := p.reload(t.Context(), d, func() (settings.Config, error) { return fresh, nil }); err != nil {
		t.Fatal(err)
	}
	if serverPEM(t, p) == before || d.access.Load() || p.config.Load().Autosign != "all" {
		t.Error("the new settings do not count")
	}
}

// listening opens a server up to the moment before it serves.
func listening(t *testing.T, c settings.Config) (*parts, *openListeners) {
	t.Helper()
	p, err := open(t.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	d, err := p.listen(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.front.Close() })
	return p, d
}

func serverPEM(t *testing.T, p *parts) string {
	t.Helper()
	text, err := os.ReadFile(p.data.Join(filepath.Join("ca", "server.pem")))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
