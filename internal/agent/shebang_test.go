package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Tasks of modules name the Ruby of Puppet's own packages. Without these packages they run by the Ruby that is there.
func TestRubyOfPackagesIsReplacedWhereItIsMissing(t *testing.T) {
	t.Parallel()
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	missing, there := filepath.Join(dir, "missing"), filepath.Join(dir, "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content, packaged string
		want              []string
	}{
		"missing":        {"#!" + missing + "\nputs 1\n", missing, []string{ruby}},
		"with arguments": {"#! " + missing + " -w\n", missing, []string{ruby, "-w"}},
		"there":          {"#!" + there + "\n", there, nil},
		"another":        {"#!/bin/sh\n", missing, nil},
		"longer":         {"#!" + missing + "2.7\n", missing, nil},
		"not the first":  {"\n#!" + missing + "\n", missing, nil},
		"no script":      {"\x7fELF", missing, nil},
		"empty":          {"", missing, nil},
	} {
		file := filepath.Join(t.TempDir(), "t")
		if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, otherRuby(file, c.packaged)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
