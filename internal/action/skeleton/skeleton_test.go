package skeleton_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/skeleton"
	"github.com/tutti-project/tutti/internal/fault"
)

// Each skeleton describes itself as a module, and does what pxp-agent asks of one. That the agent can use it is told in e2e.
func TestSkeletonsWork(t *testing.T) {
	t.Parallel()
	for _, language := range skeleton.Languages() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			files, err := skeleton.Files("notes", language)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				mode := map[bool]os.FileMode{true: 0o700, false: 0o600}[f.Executable]
				if err := os.WriteFile(filepath.Join(dir, f.Name), f.Text, mode); err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(f.Text, []byte("MODULE")) || bytes.Contains(f.Text, []byte("BUIL")) {
					t.Errorf("%s has places that are not filled:\n%s", f.Name, f.Text)
				}
			}
			program := filepath.Join(dir, "notes")
			if language == "go" {
				command(t, dir, "", 0, "go", "build", "-o", program, ".")
			}
			m, err := action.Parse("notes", []byte(command(t, dir, "", 0, program, "metadata")))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				action, input, want string
				exit                int
			}{
				{"status", `{"path":"` + dir + `/note"}`, `{"present":false,"bytes":0}`, 0},
				{"write", `{"path":"` + dir + `/note","text":"a \"b\" $c"}`, `{"changed":true}`, 0},
				{"write", `{"path":"` + dir + `/note","text":"a \"b\" $c"}`, `{"changed":false}`, 0},
				{"status", `{"path":"` + dir + `/note"}`, `{"present":true,"bytes":9}`, 0},
				{"write", `{"path":"` + dir + `/none/note","text":"x"}`, "there is no directory " + dir + "/none", 1},
				{"other", `{"path":"/"}`, "notes has no action other", 1},
			} {
				got := command(t, dir, `{"input":`+c.input+`}`, c.exit, program, c.action)
				a, known := m.Find(c.action)
				if c.exit != 0 {
					if strings.TrimSpace(got) != c.want {
						t.Errorf("%s %s: %s", c.action, c.input, got)
					}
					continue
				}
				input, err := action.Compile(a.Input)
				if err != nil || !known || input.Check([]byte(c.input)) != nil {
					t.Errorf("%s %s does not fit its own schema", c.action, c.input)
				}
				results, err := action.Compile(a.Results)
				if err != nil || results.Check([]byte(got)) != nil {
					t.Errorf("%s %s: %s does not fit its own schema", c.action, c.input, got)
				}
				for part := range strings.SplitSeq(strings.Trim(c.want, "{}"), ",") {
					if !strings.Contains(strings.Join(strings.Fields(got), ""), part) {
						t.Errorf("%s %s: %s, want %s", c.action, c.input, got, c.want)
					}
				}
			}
		})
	}
}

// command runs a program, which ends with an exit code, and returns what it prints: on standard error if it fails.
func command(t *testing.T, dir, input string, exit int, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out, errs strings.Builder
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, strings.NewReader(input), &out, &errs
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off") // as this test was built itself: Go's library is compiled already
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exit {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out.String(), errs.String())
	}
	if exit != 0 {
		return errs.String()
	}
	if errs.Len() > 0 {
		t.Errorf("%s %v: %s", name, args, errs.String())
	}
	return out.String()
}

func TestNoSkeleton(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ module, language, want string }{
		{"a b", "sh", "is no name"}, {"a.b", "sh", "has a dot"}, {"notes", "cobol", "choose sh, python, ruby, go"},
	} {
		if _, err := skeleton.Files(c.module, c.language); fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), c.want) {
			t.Errorf("%v: %v", c, err)
		}
	}
}
