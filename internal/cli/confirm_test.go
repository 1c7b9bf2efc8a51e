package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
)

// answers is a server that has an answer to each request that a test expects, and remembers what was asked.
type answers struct {
	to    map[string]any // "METHOD /path" below the prefix
	mu    sync.Mutex
	asked []string
}

func (s *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := r.Method + " " + strings.TrimPrefix(r.URL.Path, api.Prefix)
	s.mu.Lock()
	s.asked = append(s.asked, request)
	s.mu.Unlock()
	answer, known := s.to[request]
	if problem, failed := answer.(api.Problem); failed || !known {
		if !known {
			problem = api.Problem{Kind: "not_found", Message: "nothing is known of node web-11", RequestID: "r-7"}
		}
		w.WriteHeader(http.StatusNotFound)
		answer = problem
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// start serves, and returns the environment of a command line that asks it.
func (s *answers) start(t *testing.T) []string {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, certificatePEM(server), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"TUTTI_SERVER=" + server.URL, "TUTTI_CA_FILE=" + ca, "TUTTI_TOKEN=tutti_x", "HOME=" + dir}
}

func certificatePEM(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// What destroys something says what it would do, and asks somebody at a terminal; a script is not asked.
func TestWhatDestroysAsks(t *testing.T) {
	t.Parallel()
	const purge, loss = "DELETE /nodes/web-1", "forget the node web-1 (unchanged): its facts, its catalog and its reports"
	for name, c := range map[string]struct {
		terminal          bool
		args              []string
		typed, says, code string
		done              bool
	}{
		"a script":       {false, nil, "", "Node web-1 is forgotten", "0", true},
		"yes":            {true, nil, "y\n", "This will " + loss + ".\nGo on? [y/N] ", "0", true},
		"no":             {true, nil, "\n", "not confirmed; nothing was done", "2", false},
		"end of input":   {true, nil, "", "not confirmed; nothing was done", "2", false},
		"--yes":          {true, []string{"--yes"}, "", "Node web-1 is forgotten", "0", true},
		"--dry-run":      {false, []string{"--dry-run"}, "", "This would " + loss + ". Nothing was done.", "0", false},
		"--dry-run, too": {true, []string{"--dry-run", "--yes"}, "", "This would " + loss + ". Nothing was done.", "0", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &answers{to: map[string]any{"GET /nodes/web-1": api.Node{Name: "web-1", Status: "unchanged"}, purge: api.Nothing{}}}
			var out bytes.Buffer
			system := System{In: strings.NewReader(c.typed), Out: &out, Err: &out, Env: s.start(t)}
			if c.terminal {
				system.Asks, system.ErrWidth = true, 80
			}
			code := Run(t.Context(), append([]string{"node", "purge", "web-1"}, c.args...), system)
			if string(rune('0'+code)) != c.code || !strings.Contains(out.String(), c.says) || slices.Contains(s.asked, purge) != c.done {
				t.Errorf("exit code %d, asked %q\n%s", code, s.asked, out.String())
			}
		})
	}
}

// Each verb whose name says that it destroys something can be tried first.
func TestDestroyingVerbsCanBeTried(t *testing.T) {
	t.Parallel()
	found := 0
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if slices.Contains([]string{"purge", "revoke", "clean", "delete", "remove"}, cmd.Name()) {
			found++
			for _, flag := range []string{"yes", "dry-run"} {
				if cmd.Flags().Lookup(flag) == nil {
					t.Errorf("%s has no --%s", cmd.CommandPath(), flag)
				}
			}
		}
		for _, below := range cmd.Commands() {
			look(below)
		}
	}
	look((&app{}).root())
	if found < 11 {
		t.Errorf("%d verbs were found", found)
	}
}

// A name that nothing has is answered with those that are near; for programs it is JSON, with the request's id.
func TestNamesThatAreNear(t *testing.T) {
	t.Parallel()
	nodes := api.List[api.Node]{Items: []api.Node{{Name: "web-1"}, {Name: "web-12"}, {Name: "db-1"}}}
	s := &answers{
		to: map[string]any{
			"GET /nodes": nodes, "GET /groups": api.List[api.Group]{Items: []api.Group{{Name: "Web servers"}}},
			"POST /releases": api.Problem{Kind: "not_found", Message: `there is no group "Webservers"`},
		},
	}
	env := s.start(t)
	for line, want := range map[string]string{
		"job list --node web-11": "tutti: nothing is known of node web-11; did you mean web-1 or web-12?\n",
		"job list --node web-11 -o json": `{"kind":"not_found","message":"nothing is known of node web-11","hint":"did you mean web-1 or web-12?",` +
			`"request_id":"r-7","exit_code":1}` + "\n",
		"release create --preview 1 --wave @Webservers": "tutti: there is no group \"Webservers\"; did you mean @Web servers?\n",
	} {
		var out bytes.Buffer
		if code := Run(t.Context(), strings.Fields(line), System{Out: &out, Err: &out, Env: env}); code != exitFailed || out.String() != want {
			t.Errorf("%s: exit code %d, %q; want %q", line, code, out.String(), want)
		}
	}
}

// With --watch a list comes again until Ctrl-C; on a terminal over what was there.
func TestWatch(t *testing.T) {
	t.Parallel()
	for width, again := range map[int]string{0: "NODE", 80: "\x1b[H\x1b[2JEvery 500ms: tutti node list"} {
		s := &answers{to: map[string]any{"GET /nodes": api.List[api.Node]{Items: []api.Node{{Name: "web-1"}}}}}
		out := &repeated{again: again}
		ctx, cancel := contextUntil(t, out)
		code := Run(ctx, []string{"node", "list", "--watch=500ms"}, System{Out: out, Err: &bytes.Buffer{}, Env: s.start(t), Width: width})
		cancel()
		if code != exitDone || strings.Count(out.String(), again) < 2 {
			t.Errorf("exit code %d\n%q", code, out.String())
		}
	}
	var out bytes.Buffer
	if code := Run(t.Context(), []string{"node", "list", "--watch=1ms"}, System{Out: &out, Err: &out}); code != exitUsage ||
		!strings.Contains(out.String(), "at least 500ms") {
		t.Errorf("exit code %d, %s", code, out.String())
	}
}

// What a verb adds to its input does not count for the next look.
func TestEachLookBeginsAnew(t *testing.T) {
	t.Parallel()
	type input struct{ looks int }
	out := &repeated{again: "look"}
	ctx, cancel := contextUntil(t, out)
	defer cancel()
	a := &app{system: System{Out: out, Err: &bytes.Buffer{}}, colour: "auto"}
	cmd := verb[input]{use: "looks", prints: aList, run: func(_ context.Context, c *call, in *input) error {
		in.looks++
		return c.printer().Linef("look %d", in.looks)
	}}.command(a)
	cmd.SetArgs([]string{"--watch=500ms"})
	if err := cmd.ExecuteContext(ctx); err != nil || out.String() != "look 1\nlook 1\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "2w": 336 * time.Hour, "1.5h": 90 * time.Minute, "0": 0, "1w2d3h": 219 * time.Hour,
		"350ms": 350 * time.Millisecond, "-5m": -5 * time.Minute,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "5", "d", "5x", "soon", "1h 30m", "9999999w", "1..5h"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}
