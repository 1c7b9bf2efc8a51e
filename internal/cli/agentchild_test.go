package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/cli"
)

// What the agent starts to do one action: results on standard output, or the bare reason on standard error.
func TestOneActionOfTheAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	for _, c := range []struct {
		args, input, out, errs string
		code                   int
	}{
		{"filemgr touch", `{"file":"` + path + `"}`, `{"output":"the file was made"}`, "", 0},
		{"--puppet /nothing filemgr remove", `{"file":"` + path + `"}`, `{"output":"it was removed"}`, "", 0},
		{"filemgr remove", `{}`, "", "field file: it is missing\n", 1},
		{"filemgr touch", `{"file":"` + path + `/below"}`, "", path + "/below was not touched: no such file or directory\n", 1},
		{"filemgr cook", `{}`, "", "unknown action 'cook' for module 'filemgr'\n", 1},
		{"kitchen cook", `{}`, "", "unknown module: kitchen\n", 1},
	} {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), append([]string{"errand", "action"}, strings.Fields(c.args)...), cli.System{
			In: strings.NewReader(c.input), Out: &out, Err: &errs,
		})
		if code != c.code || out.String() != c.out || errs.String() != c.errs {
			t.Errorf("%s %s: exit code %d, %q, %q", c.args, c.input, code, out.String(), errs.String())
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there")
	}
}
