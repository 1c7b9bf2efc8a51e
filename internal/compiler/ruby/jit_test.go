package ruby

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

func TestJITIsUsedOnlyWhereRubyHasOne(t *testing.T) {
	t.Parallel()
	refuses, has := filepath.Join(t.TempDir(), "ruby"), filepath.Join(t.TempDir(), "ruby")
	for path, text := range map[string]string{
		refuses: "#!/bin/sh\necho invalid option --yjit >&2\nexit 1\n",
		has:     "#!/bin/sh\ntest \"$1\" = --yjit\n",
	} {
		programtest.Write(t, path, text)
	}
	for _, path := range []string{refuses, "/nowhere/ruby"} {
		if got := jit(t.Context(), path, t.TempDir()); got != nil {
			t.Errorf("%s: got %q, want none", path, got)
		}
	}
	if got := jit(t.Context(), has, t.TempDir()); !slices.Equal(got, jitArgs) {
		t.Errorf("got %q, want %q", got, jitArgs)
	}
}
