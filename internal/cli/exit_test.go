package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
)

// The exit codes of docs/exit-codes.md hold for every command that asks a server: the first example of its help is run against a
// server that is away, against one that refuses everybody, and with a flag that is none.
func TestExitCodesOfAllCommands(t *testing.T) {
	t.Parallel()
	denies := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_ = json.NewEncoder(w).Encode(api.Problem{Kind: "denied", Message: "node:read needs a token"})
	}))
	t.Cleanup(denies.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, certificatePEM(denies), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(server string) []string {
		return []string{"HOME=" + dir, "TUTTI_SERVER=" + server, "TUTTI_CA_FILE=" + ca, "TUTTI_TOKEN=tutti_x", "TUTTI_DATA=" + dir}
	}
	asked := 0
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			each(below)
		}
		args := exampleOf(t, cmd)
		if args == nil || cmd.InheritedFlags().Lookup("server") == nil && cmd.LocalFlags().Lookup("server") == nil {
			return
		}
		asked++
		for what, c := range map[string]struct {
			env  []string
			more []string
			want int
		}{
			"no server":    {env("https://127.0.0.1:1"), nil, exitUnreachable},
			"no right":     {env(denies.URL), nil, exitDenied},
			"no such flag": {env(denies.URL), []string{"--no-such-flag"}, exitUsage},
			"no such form": {env(denies.URL), []string{"--output", "odd"}, exitUsage},
		} {
			if local := needsMore[strings.TrimPrefix(cmd.CommandPath(), "tutti ")]; local != "" && c.want != exitUsage {
				continue
			}
			var out bytes.Buffer
			in := strings.NewReader("a-long-password\n")
			code := Run(t.Context(), append(args, c.more...), System{In: in, Out: &out, Err: &out, Env: c.env})
			if code != c.want {
				t.Errorf("tutti %s, %s: exit code %d, want %d\n%s", strings.Join(args, " "), what, code, c.want, out.String())
			}
		}
	}
	each((&app{}).root())
	if asked < 100 {
		t.Errorf("%d commands ask a server", asked)
	}
}

// needsMore are the commands whose example needs what is not here before it asks a server: each with what that is.
var needsMore = map[string]string{
	"app module": "a directory", "code deploy": "a directory", "preview create": "a directory", "file send": "a file", "script run": "a file",
	"group apply": "a file", "login": "a terminal", "user create": "a terminal", "user password": "a terminal", "policy set": "its second line",
	"context add": "a fingerprint", "mco help": "a text, and no server", "version": "a flag: it asks none without", "logout": "a login",
	"access login": "a terminal", "access show": "a login, and no server", "access delete-token-file": "a login, and no server",
	"ca adopt": "the server's machine", "ca import": "the server's machine", "token rotate-admin": "the server's machine",
}

// exampleOf is the first example of a command's help as arguments; nil: it has none.
func exampleOf(t *testing.T, cmd *cobra.Command) []string {
	t.Helper()
	for line := range strings.Lines(cmd.Example) {
		line = strings.TrimSpace(line)
		if command, ok := strings.CutPrefix(line, cmd.CommandPath()); ok && (command == "" || command[0] == ' ') {
			command, _, _ = strings.Cut(command, " | ")
			command, _, _ = strings.Cut(command, " > ")
			return append(strings.Fields(cmd.CommandPath())[1:], unquoted(command)...)
		}
	}
	return nil
}

// unquoted splits a line as a shell does that knows single and double quotes only.
func unquoted(line string) (words []string) {
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
