package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

func TestFindingLines(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"site.pp:3:7: Syntax error at '}'": findingLine(api.CodeFinding{Level: "mistake", File: "site.pp", Line: 3, Column: 7, Message: "Syntax error at '}'"}),
		"a.erb:3: no":                      findingLine(api.CodeFinding{Level: "mistake", File: "a.erb", Line: 3, Message: "no"}),
		"a.erb: warning: no":               findingLine(api.CodeFinding{Level: "warning", File: "a.erb", Column: 3, Message: "no"}),
		"note: reads the clock  (a, b and 3 nodes with the same classes)": findingLine(api.CodeFinding{
			Level: "note", Message: "reads the clock", Nodes: []string{"a", "b"}, Alike: 5,
		}),
		"x  (a)": findingLine(api.CodeFinding{Level: "mistake", Message: "x", Nodes: []string{"a"}, Alike: 1}),
		"Checked 20 files beside version abc in 1.2s; no node's catalog had to be compiled": checkedText(api.CodeCheck{
			Files: 20, Base: "abc", Seconds: 1.2,
		}),
		"Checked 1 file in 1s; no catalog was compiled: the files come first": checkedText(api.CodeCheck{
			Files: 1, Seconds: 1, Unread: true,
		}),
		"Checked 1 file and compiled for 2 nodes, one of each set of classes, in 1s (a preview compiles for all)": checkedText(api.CodeCheck{
			Files: 1, Seconds: 1, Sets: 2, Compiled: 2,
		}),
		"Checked 1 file and compiled for 2 of 9 sets of classes (deploy_check_nodes) in 1s": checkedText(api.CodeCheck{Files: 1, Seconds: 1, Sets: 9, Compiled: 2}),
		"a.pp:3: new warning: no": findingLine(api.CodeFinding{Level: "warning", File: "a.pp", Line: 3, New: true, Message: "no"}),
		"Checked 1 file and compiled for 2 nodes, one of each set of classes, and for 3 more nodes that read other changed files, in 1s (a preview compiles for all): 4 warnings, 1 new": checkedText(
			api.CodeCheck{Files: 1, Seconds: 1, Sets: 2, Compiled: 2, More: 3, Warnings: 4, New: 1}),
		"Checked 1 file in 1s; no node's catalog had to be compiled: 1 warning": checkedText(api.CodeCheck{Files: 1, Seconds: 1, Warnings: 1}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Mistakes are all shown, and of the rest as much as can be read; where the rest is, is said.
func TestManyFindingsAreBounded(t *testing.T) {
	t.Parallel()
	check := api.CodeCheck{Cut: 7}
	for i := range 70 {
		f := api.CodeFinding{Level: "warning", Message: fmt.Sprint("w", i), New: i < 45}
		if i < 30 {
			f = api.CodeFinding{Level: "mistake", Message: fmt.Sprint("m", i)}
		}
		check.Findings = append(check.Findings, f)
	}
	var out bytes.Buffer
	printCheck(&app{system: System{Out: &out, Err: &out}}, check, "`it`")
	for text, want := range map[string]bool{
		"\nm29\n": true, "w49\n": true, "w50": false, "and 20 more; `it` shows all\n": true, "7 findings more were not kept": true,
	} {
		if strings.Contains(out.String(), text) != want {
			t.Errorf("%q is there: %v, of\n%s", text, !want, out.String())
		}
	}
}

func TestExitCodesOfCode(t *testing.T) {
	t.Parallel()
	mistakes := &api.CodeCheck{Mistakes: 1}
	for name, test := range map[string]struct {
		status api.CodeStatus
		want   int
	}{
		"all is well":                          {api.CodeStatus{Nodes: 3, Current: 2, Unknown: 1, Check: &api.CodeCheck{}}, exitDone},
		"some do not compile, and others wait": {api.CodeStatus{Failed: 1, Waiting: 1}, exitSomeFailed},
		"mistakes that no node has":            {api.CodeStatus{Check: mistakes}, exitSomeFailed},
		"some are held, and others wait":       {api.CodeStatus{Held: 1, Waiting: 1}, exitSomeFailed},
		"some lost resources and were given":   {api.CodeStatus{Current: 1, Warned: 1}, exitDone},
		"some wait":                            {api.CodeStatus{Waiting: 1}, exitLate},
	} {
		if got := exitCode(codeOutcome(test.status, true)); got != test.want {
			t.Errorf("%s: exit code %d, want %d", name, got, test.want)
		}
		if err := codeOutcome(test.status, false); err != nil {
			t.Errorf("%s, and nobody asks: %v", name, err)
		}
	}
	refused := &fault.Error{Kind: fault.Conflict, Detail: "no", Err: &api.CheckFailed{Check: *mistakes}}
	if got := exitCode(refused); got != exitSomeFailed {
		t.Errorf("a refused version: exit code %d", got)
	}
}
