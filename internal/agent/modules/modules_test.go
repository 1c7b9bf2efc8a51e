package modules_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	agentmodules "github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

const goodMetadata = `{"description":"plays","configuration":{"type":"object","properties":{"volume":{"type":"integer"}},"required":["volume"]},
"actions":[{"name":"play","description":"x","input":{"type":"object","properties":{"tune":{"type":"string"}},"required":["tune"]},
"results":{"type":"object","properties":{"played":{"type":"boolean"}},"required":["played"]}}]}`

// node is directories with modules and their configuration.
type node struct {
	t        *testing.T
	dir, cfg string
	log      *bytes.Buffer
}

func newNode(t *testing.T) node {
	t.Helper()
	return node{t: t, dir: t.TempDir(), cfg: t.TempDir(), log: &bytes.Buffer{}}
}

func (n node) write(path, text string, mode os.FileMode) {
	n.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		n.t.Fatal(err)
	}
}

// module is an executable that prints its metadata so.
func (n node) module(name, body string) {
	n.t.Helper()
	programtest.Write(n.t, filepath.Join(n.dir, name), "#!/bin/sh\n"+body+"\n")
}

func prints(metadata string) string { return "cat <<'END'\n" + metadata + "\nEND" }

func (n node) config() agentmodules.Config {
	return agentmodules.Config{
		Dir: n.dir, ConfigDir: n.cfg, Program: []string{"/bin/tutti", "errand", "choria"}, Activation: time.Minute, Log: slog.New(slog.NewTextHandler(n.log, nil)),
	}
}

// load returns the modules, and the problems of others, a line each.
func (n node) load() ([]orders.Module, string) {
	n.t.Helper()
	modules, problems, err := agentmodules.Load(n.t.Context(), n.config())
	if err != nil {
		n.t.Fatal(err)
	}
	var said strings.Builder
	for _, p := range problems {
		if !strings.HasPrefix(p.Path, n.dir+"/"+p.Module) {
			n.t.Errorf("the problem of %s has the path %s", p.Module, p.Path)
		}
		fmt.Fprintf(&said, "%s: %s\n", p.Module, p.Reason)
	}
	return modules, said.String()
}

func (n node) play() orders.Action {
	n.t.Helper()
	modules, log := n.load()
	if len(modules) != 1 || modules[0].Name != "band" {
		n.t.Fatalf("modules %v, log %s", modules, log)
	}
	return modules[0].Actions["play"]
}

func TestModule(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.module("real", prints(goodMetadata))
	if err := os.Rename(filepath.Join(n.dir, "real"), filepath.Join(n.cfg, "real")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(n.cfg, "real"), filepath.Join(n.dir, "band")); err != nil {
		t.Fatal(err)
	}
	n.write(filepath.Join(n.dir, "readme.txt"), "no module", 0o700)
	n.write(filepath.Join(n.dir, "plain"), "not executable", 0o600)
	if err := os.Mkdir(filepath.Join(n.dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	n.write(filepath.Join(n.cfg, "band.conf"), `{"volume":11}`, 0o600)
	play := n.play()
	command, err := play.Prepare(t.Context(), orders.Order{Params: jsontext.Value(`{"tune":"x"}`)})
	want := orders.Command{Path: filepath.Join(n.dir, "band"), Args: []string{"play"}, Input: []byte(`{"input":{"tune":"x"},"configuration":{"volume":11}}`)}
	if diff := cmp.Diff(want, command); err != nil || diff != "" {
		t.Errorf("the command: %v (-want +got):\n%s", err, diff)
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.module("band", prints(goodMetadata))
	play := n.play()
	for params, want := range map[string]string{
		`{"tune":"x","more":1}`: "",
		`{"tune":"secret?"}`:    "",
		`{}`:                    "field tune: it is missing",
		`{"tune":12345}`:        "field tune: it must be of the type string",
	} {
		err := play.Check(jsontext.Value(params))
		if fault.Detail(err) != want || (err == nil) != (want == "") || err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("%s: %v", params, err)
		}
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.module("band", prints(goodMetadata))
	play := n.play()
	for stdout, want := range map[string]string{
		`{"played":true}` + "\n": "",
		`{"played":1}`:           `returned invalid results on stdout: {"played":1} - stderr: (empty)`,
		" \n":                    "returned no results on stdout - stderr: (empty)",
		"{":                      "returned invalid JSON on stdout - stderr: (empty)",
	} {
		results, err := play.Results(orders.Output{Stdout: []byte(stdout)})
		if err != nil && err.Error() != want || err == nil && (want != "" || string(results) != strings.TrimSpace(stdout)) {
			t.Errorf("%s: %s, %v", stdout, results, err)
		}
	}
	failed := 3
	for stdout, data := range map[string]string{"": "", "x": "", `{"part":1}`: `{"part":1}`} {
		_, err := play.Results(orders.Output{Exit: &failed, Stdout: []byte(stdout), Stderr: []byte("no strings\n")})
		aborted, ok := errors.AsType[*orders.Aborted](err)
		if !ok || aborted.Message != "no strings" || string(aborted.Data) != data {
			t.Errorf("%q with exit code 3: %v", stdout, err)
		}
	}
	if results, err := play.Results(orders.Output{Exit: &failed, Stdout: []byte(`{"played":true}`), Stderr: []byte("x")}); err != nil ||
		string(results) != `{"played":true}` {
		t.Errorf("results that fit, with exit code 3: %s, %v", results, err)
	}
	_, err := play.Results(orders.Output{Stdout: []byte("{"), Stderr: []byte("bro\xffken")})
	if err == nil || err.Error() != "returned invalid JSON on stdout - stderr: \nbro�ken" {
		t.Errorf("with stderr: %v", err)
	}
}

// A program that failed without a result did not do what it was asked for, though its schema allows anything.
func TestNoResultsOfAProgramThatFailed(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.module("band", prints(quiet))
	play, failed, done := n.play(), 3, 0
	if _, err := play.Results(orders.Output{Exit: &failed, Stderr: []byte("no strings\n")}); !strings.Contains(fmt.Sprint(err), "no strings") {
		t.Errorf("with words: %v", err)
	}
	if _, err := play.Results(orders.Output{Exit: &failed, Stdout: []byte(" \n")}); fmt.Sprint(err) != "returned no results on stdout - stderr: (empty)" {
		t.Errorf("without a word: %v", err)
	}
	if results, err := play.Results(orders.Output{Exit: &done, Stderr: []byte("well\n")}); err != nil || string(results) != "null" {
		t.Errorf("with exit code 0: %s, %v", results, err)
	}
}

func TestModulesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for want, body := range map[string]string{
		"words on standard error":   "echo warning >&2; " + prints(goodMetadata),
		"exit status 3":             prints(goodMetadata) + "\nexit 3",
		"not JSON":                  "echo '{'",
		"no description":            "echo '{}'",
		"no actions":                `echo '{"description":"x"}'`,
		"no schema for input":       `echo '{"description":"x","actions":[{"name":"a","input":{}}]}'`,
		"is no name":                `echo '{"description":"x","actions":[{"name":"","input":{},"results":{}}]}'`,
		"the input of a":            `echo '{"description":"x","actions":[{"name":"a","input":{"type":1},"results":{}}]}'`,
		"which is outside":          `echo '{"description":"x","actions":[{"name":"a","input":{"$ref":"file:///etc/passwd"},"results":{}}]}'`,
		"more than 1048576 bytes":   "head -c 2000000 /dev/zero | tr '\\0' ' '",
		"configuration is not JSON": prints(strings.Replace(goodMetadata, `"play"`, `"badconf"`, 1)),
		"does not fit: field volume: it must be of the type integer": prints(strings.Replace(goodMetadata, `"play"`, `"otherconf"`, 1)),
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.module("band", body)
			switch {
			case strings.Contains(body, "badconf"):
				n.write(filepath.Join(n.cfg, "band.conf"), "{", 0o600)
			case strings.Contains(body, "otherconf"):
				n.write(filepath.Join(n.cfg, "band.conf"), `{"volume":"loud"}`, 0o600)
			}
			n.module("good", prints(strings.Replace(goodMetadata, `"configuration"`, `"x"`, 1)))
			modules, log := n.load()
			if len(modules) != 1 || modules[0].Name != "good" || !strings.Contains(log, want) {
				t.Errorf("modules %v, log %s", modules, log)
			}
		})
	}
}

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	modules, problems, err := agentmodules.Load(t.Context(), agentmodules.Config{Dir: "/nobody/here", Log: slog.New(slog.DiscardHandler)})
	if err != nil || len(modules)+len(problems) != 0 {
		t.Errorf("got %v, %v", modules, err)
	}
}
