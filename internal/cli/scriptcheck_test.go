package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScriptsThatNobodyCanRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, begin, want string }{
		"a shell script":         {"mend.sh", "#!/bin/sh\n", ""},
		"with an argument":       {"mend", "#! /usr/bin/env python3\n", ""},
		"for Windows":            {"mend.PS1", "Get-Service\n", ""},
		"a program":              {"mend", "\x7fELF\x02", ""},
		"a program of macOS":     {"mend", "\xcf\xfa\xed\xfe", ""},
		"no interpreter":         {"mend.sh", "echo hello\n", "no first line that names its interpreter"},
		"it is on another line":  {"mend.sh", "\n#!/bin/sh\n", "no first line that names its interpreter"},
		"lines end as elsewhere": {"mend.sh", "#!/bin/sh\r\necho\r\n", "its interpreter would be /bin/sh with a carriage return"},
		"a byte order mark":      {"mend.sh", "\xef\xbb\xbf#!/bin/sh\n", "byte order mark"},
		"nothing behind":         {"mend.sh", "#! \n", "#! without an interpreter"},
		"empty":                  {"mend.sh", "", "it is empty"},
	} {
		if got := notRunnable(test.file, []byte(test.begin)); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// It is said before any server is asked.
func TestAScriptWithoutAnInterpreterIsNotSent(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "mend.sh")
	if err := os.WriteFile(script, []byte("echo hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := Run(t.Context(), []string{"script", "run", script, "--all", "--server", "https://localhost:1", "--token-file", "/dev/null"},
		System{Out: &out, Err: &out})
	if want := script + " cannot be run: it has no first line that names its interpreter, such as #!/bin/sh or #!/usr/bin/env python3; add one. Nothing was sent"; code != exitUsage || !strings.Contains(out.String(), want) {
		t.Errorf("exit code %d, %q", code, &out)
	}
}
