package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every command of docs/access.md works, one after the other. People come by the console's listener, too.
func TestTheCommandsOfTheAccessPage(t *testing.T) {
	begin(t)
	page, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	s, home := startServer(t, "--console-listen", "127.0.0.1:0"), t.TempDir()
	servesBrowsers(t, s)
	write(t, filepath.Join(home, "password"), "correct horse battery\n")
	count := 0
	for block := range strings.SplitSeq(string(page), "```console\n") {
		commands, _, found := strings.Cut(block, "```")
		if !found {
			continue
		}
		for line := range strings.Lines(commands) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !ok || !strings.HasPrefix(command, "tutti ") {
				continue
			}
			count++
			cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
			cmd.Dir = home
			cmd.Env = append(cleanEnv(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+s.data, "HOME="+home)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d commands were found on the page", count)
	}
}
