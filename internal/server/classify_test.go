package server

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/classify/classifytest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
	"github.com/tutti-project/tutti/internal/server/settings"
)

func openParts(tb testing.TB, change func(*settings.Config)) *parts {
	tb.Helper()
	c := settings.Default()
	c.Data = filepath.Join(tb.TempDir(), "data")
	change(&c)
	p, err := open(tb.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.close() })
	return p
}

func TestAChangeOfGroupsCountsAtOnce(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	facts := []byte(`{"os":{"family":"Debian"}}`)
	given, err := (checkin.Classes{Groups: p.groups}).Classify(t.Context(), "web-1", "production", facts, nil)
	if err != nil || given.Classes != nil || given.Parameters != nil || given.Data != nil {
		t.Errorf("without groups: %s, %v", given, err)
	}
	g := classifytest.Sample(1)
	if _, err := p.store.Groups.ChangeGroups(t.Context(), []classify.Change{{Kind: classify.Create, Group: g}}); err != nil {
		t.Fatal(err)
	}
	given, err = (checkin.Classes{Groups: p.groups}).Classify(t.Context(), "web-1", "production", facts, nil)
	if err != nil || !strings.Contains(string(given.Classes), `"port":80`) || string(given.Parameters) != `{"site":"north"}` ||
		string(given.Data) != `{"ssh::server::ciphers":["aes"]}` {
		t.Errorf("with a group: %s, %v", given, err)
	}
	other := classifytest.Sample(2)
	other.Variables = classify.Values{"site": []byte(`"south"`)}
	if _, err := p.store.Groups.ChangeGroups(t.Context(), []classify.Change{{Kind: classify.Create, Group: other}}); err != nil {
		t.Fatal(err)
	}
	if _, err = (checkin.Classes{Groups: p.groups}).Classify(t.Context(), "web-1", "production", facts, nil); fault.Of(err) != fault.Invalid ||
		!strings.Contains(err.Error(), `variable $site is "north" from group "Group 001"`) {
		t.Errorf("with a conflict: %v", err)
	}
}

func TestAnExternalClassifierDecidesInsteadOfGroups(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "classify")
	program := "#!/bin/sh\ntest \"$1\" = web-1 || exit 0\nprintf 'classes: {ntp: {n: 1.0}}\\nparameters: {site: east}\\nenvironment: test\\n'\n"
	programtest.Write(t, path, program)
	p := openParts(t, func(c *settings.Config) { c.ExternalNodeClassifier = path })
	if _, err := p.store.Groups.ChangeGroups(t.Context(), []classify.Change{{Kind: classify.Create, Group: classifytest.Sample(1)}}); err != nil {
		t.Fatal(err)
	}
	given, err := (checkin.Classes{Groups: p.groups}).Classify(t.Context(), "web-1", "production", nil, nil)
	if err != nil || string(given.Classes) != `{"ntp":{"n":1.0}}` || string(given.Parameters) != `{"site":"east"}` || given.Data != nil {
		t.Errorf("got %s, %v", given, err)
	}
	if env, err := p.groups.Environment(t.Context(), "web-1"); env != "test" || err != nil {
		t.Errorf("environment %s, %v", env, err)
	}
	e, err := p.groups.Explain(t.Context(), "web-1")
	if err != nil || len(e.Members) != 1 || e.Members[0].Name != classify.ExternalName || len(e.Result.Origins) != 4 {
		t.Errorf("explained %+v, %v", e, err)
	}
	if _, err := (checkin.Classes{Groups: p.groups}).Classify(t.Context(), "web-2", "production", nil, nil); fault.Of(err) != fault.Invalid {
		t.Errorf("a node that it does not know: %v", err)
	}
}
