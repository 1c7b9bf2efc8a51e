package hook_test

import (
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/hook"
)

func TestNodeClassifier(t *testing.T) {
	t.Parallel()
	runner, dir := hook.New(hook.Config{Log: quiet, MaxOutputBytes: 1000}), t.TempDir()
	good, err := runner.NodeClassifier(script(t, dir+"/good", `printf -- '---\nclasses:\n  ntp:\n  ssh: {port: 22}\nenvironment: %s\n' "$1"`))
	must(t, err)
	answer, err := good.Classification(t.Context(), "web1")
	must(t, err)
	if want := `{"classes":{"ntp":null,"ssh":{"port":22}},"environment":"web1"}`; string(answer) != want {
		t.Errorf("got %s, want %s", answer, want)
	}
	for name, c := range map[string]struct {
		body string
		want fault.Kind
	}{
		"fails":    {"exit 3", fault.Unavailable},
		"no YAML":  {`echo "{"`, fault.Invalid},
		"nothing":  {":", fault.Invalid},
		"too much": {"head -c 3000 /dev/zero", fault.Invalid},
	} {
		program, err := runner.NodeClassifier(script(t, dir+"/bad/"+name, c.body))
		must(t, err)
		_, err = program.Classification(t.Context(), "web1")
		kind(t, err, c.want)
	}
	_, err = runner.NodeClassifier(dir)
	kind(t, err, fault.Invalid)
}
