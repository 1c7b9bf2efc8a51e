package code_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fleet"
)

func TestModuleFiles(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	paths := func(module, dir string) (list []string) {
		for _, f := range tree.ModuleFiles(module, dir) {
			list = append(list, f.Path)
		}
		return list
	}
	for _, c := range []struct {
		module, dir string
		want        []string
	}{
		{"web", "tasks", []string{"restart.json", "restart.sh"}},
		{"web", "lib", []string{"README.md", "puppet/both.rb", "puppet/functions/hello.rb"}},
		{"linked", "files", []string{"in_linked"}},
		{"shadowed", "files", []string{"which"}},
		{"base", "files", []string{"base.txt"}},
		{"web", "types", nil},
		{"web", "files/motd", nil},
		{"none", "tasks", nil},
	} {
		if diff := cmp.Diff(c.want, paths(c.module, c.dir)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.dir, c.module, diff)
		}
	}
	for _, f := range tree.ModuleFiles("web", "files") {
		if f.Path == "to_motd" && f.File.Digest != fleet.DigestOf([]byte("hello\n")) {
			t.Errorf("a link is not what it leads to: %+v", f)
		}
		if f.Path == "dangling" || f.Path == "to_conf" {
			t.Errorf("%s is listed", f.Path)
		}
	}
}
