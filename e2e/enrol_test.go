package e2e_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

// Every command of the page about enrolling: by token, by hand, and a stock agent.
func TestThePageAboutEnrolling(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--compile-patience", "60s", "--max-load", "0")
	versionOf(t, s, releasedCode(t, "enrolled"))
	text, err := os.ReadFile(filepath.Join(docs, "enrol.md"))
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a := newAgent(t, s, "web-3") // the node's own directories, and the server's port, which is not the usual one
	programtest.Write(t, filepath.Join(dir, "bin/puppet"), a.script())
	sh := newShell(t, dir, "PATH="+filepath.Join(dir, "bin")+":"+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+s.data, "SERVER="+s.url,
		"HOST="+at.Hostname(), "HOME="+t.TempDir())
	for i, part := range strings.Split(string(text), "\n## ") {
		sh.types("export TUTTI_AGENT_DIR=" + filepath.Join(dir, "node", string(rune('a'+i))))
		sh.follows("enrol.md", part)
	}
}
