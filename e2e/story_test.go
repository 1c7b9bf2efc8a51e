package e2e_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tutti-project/tutti/internal/sim"
)

// The stories in testdata/stories are told at the command line alone. `serve` starts a server
// for the rest of the story, and TUTTI_DATA and SERVER point to it. `reap FILE` ends, with the story, the process whose number will be in FILE. `checkin NODE
// [FACTS]` is a node that gets its certificate, sends these facts (a JSON object, or a file of one) and
// fetches its catalog. `fleet NODE...` is simulated nodes whose agents are connected, `! fleet` takes them away. `agent NODE...` is real agents. `documented
// PAGE` runs what a page of docs/ shows. FACTS may name the environment it asks for, as story_environment; with story_noop it reports a noop run that would
// change one file. [three] is whether three servers stand for the one (three_test.go).
func TestStories(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/stories",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+":"+os.Getenv("PATH"))
			packaging, err := filepath.Abs("../packaging")
			if err != nil {
				return err
			}
			env.Setenv("PACKAGING", packaging)
			env.Values[storyKey{}] = &storyServer{}
			env.Defer(told(env.T(), queue.take(storySeconds)))
			return nil
		},
		Condition: func(word string) (bool, error) {
			if word != "three" {
				return false, fmt.Errorf("there is no condition %q", word)
			}
			return several3.on, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serve, "halt": halt, "resume": resume, "checkin": checkIn, "documented": documented, "fleet": connectNodes, "agent": runAgents, "reap": reap,
		},
	})
}

// documented runs every command that a page shows after "$ ", and compares what it
// prints with what the page shows below; … stands for anything.
func documented(script *testscript.TestScript, not bool, args []string) {
	if not || len(args) != 1 {
		script.Fatalf("usage: documented PAGE")
	}
	page, err := os.ReadFile(filepath.Join(docs, args[0]))
	script.Check(err)
	ran := 0
	for block := range strings.SplitSeq(string(page), "```\n") {
		if !strings.HasPrefix(block, "$ ") {
			continue
		}
		for command := range strings.SplitSeq(strings.TrimPrefix(block, "$ "), "\n$ ") {
			line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n"), "\n")
			script.Check(script.Exec("sh", "-c", line))
			ran++
			got := strings.TrimSuffix(script.ReadFile("stdout"), "\n")
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", "(?s:.*)") + "$"
			if !regexp.MustCompile(pattern).MatchString(got) {
				script.Fatalf("%s: $ %s\nprints\n%s\nthe page says\n%s", args[0], line, got, want)
			}
		}
	}
	if ran == 0 {
		script.Fatalf("%s shows no command", args[0])
	}
}

// docs are the pages, from where tests run.
const docs = "../docs"

// storySeconds is how long one of the longer stories takes.
const storySeconds = 45

// storyKey is what a story's server is found by.
type storyKey struct{}

// storyServer is the server of a story.
type storyServer struct {
	*server
	enroller *sim.Enroller
	fleets   []*fleet
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
	script.Setenv("SERVER", s.url)
	script.Value(storyKey{}).(*storyServer).server = s
}

// halt stops the story's server, and resume starts it again.
func halt(script *testscript.TestScript, _ bool, _ []string) {
	script.Check(script.Value(storyKey{}).(*storyServer).stop())
}

func resume(script *testscript.TestScript, _ bool, _ []string) {
	script.Check(script.Value(storyKey{}).(*storyServer).start())
}

// reap ends a process that a command of the story leaves behind, whatever becomes of the story.
func reap(script *testscript.TestScript, not bool, args []string) {
	if not || len(args) != 1 {
		script.Fatalf("usage: reap FILE")
	}
	path := script.MkAbs(args[0])
	script.Defer(func() {
		text, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && pid > 1 {
			if p, there := lookup(pid); there {
				p.kill()
			}
		}
	})
}

// checkIn is a node's first run, without an agent.
func checkIn(script *testscript.TestScript, not bool, args []string) {
	if not || len(args) < 1 || len(args) > 2 {
		script.Fatalf("usage: checkin NODE [FACTS]")
	}
	facts := map[string]any{}
	if len(args) == 2 {
		text := []byte(args[1])
		if text[0] != '{' {
			text = []byte(script.ReadFile(args[1]))
		}
		script.Check(json.Unmarshal(text, &facts))
	}
	script.Check(script.Value(storyKey{}).(*storyServer).checkIn(args[0], facts))
}

func (s *server) checkIn(name string, facts map[string]any) error {
	roots, err := s.pool()
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	n := &node{server: s, name: name, client: &http.Client{Timeout: agentTimeout, Transport: transport}}
	certificate, err := requestCertificate(n, name)
	if err != nil {
		return err
	}
	own := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}}
	defer own.CloseIdleConnections()
	n.client.Transport = own
	environment, ok := facts["story_environment"].(string)
	if !ok {
		environment = "production"
	}
	answer, err := n.catalog(environment, facts)
	if err == nil && answer.status != http.StatusOK {
		err = fmt.Errorf("catalog of %s: %d %s", name, answer.status, answer.body)
	}
	if err != nil || facts["story_noop"] != true {
		return err
	}
	answer, err = n.patient(http.MethodPut, "/puppet/v3/report/"+name+"?environment="+environment, "application/json", noopReport(name))
	if err == nil && answer.status != http.StatusOK {
		err = fmt.Errorf("report of %s: %d %s", name, answer.status, answer.body)
	}
	return err
}

// noopReport is the report of a run that would have changed one file.
func noopReport(name string) []byte {
	only := strings.NewReplacer(`"noop":false`, `"noop":true`, `"noop_pending":false`, `"noop_pending":true`, `"status":"changed"`, `"status":"unchanged"`,
		`"status":"success"`, `"status":"noop"`)
	return []byte(only.Replace(string(reportJSON(name, newUUID()))))
}
