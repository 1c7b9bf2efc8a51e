package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The stories in testdata/stories are told at the command line alone. `serve` starts a server
// for the rest of the story, and TUTTI_DATA points to it.
func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/stories",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+":"+os.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"serve": serve},
	})
}

// serve starts a server with the given flags and ends it with the story.
func serve(script *testscript.TestScript, not bool, flags []string) {
	if not {
		script.Fatalf("usage: serve [FLAGS]")
	}
	s := newServer(script.MkAbs("server"), flags...)
	script.Check(os.MkdirAll(filepath.Dir(s.log), 0o700))
	script.Check(s.start())
	script.Defer(func() { script.Check(s.stop()) })
	script.Setenv("TUTTI_DATA", s.data)
}
