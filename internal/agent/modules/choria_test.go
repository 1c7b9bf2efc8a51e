package modules_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	agentmodules "github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

const choir = `{"metadata": {"name": "choir", "description": "sings", "version": "1.0.0", "timeout": 20}, "actions": [{"action": "sing", "description": "x",
  "input": {"song": {"prompt": "Song", "description": "x", "type": "string", "validation": "shellsafe", "optional": false, "maxlength": 20}},
  "output": {"sung": {"display_as": "Sung", "type": "string"}, "voices": {"type": "integer", "default": 4}}}]}`

// activated answers the question of activation, and then does what an action is to do.
func activated(body string) string {
	return `case $3 in *.activation_request) echo '{"activate":true}' > "$2"; exit;; esac` + "\n" + body
}

// choir makes a module of Choria's contract, and its action.
func (n node) choir(body string) orders.Action {
	n.t.Helper()
	n.write(filepath.Join(n.dir, "choir.json"), choir, 0o600)
	n.module("choir", activated(body))
	modules, problems := n.load()
	if len(modules) != 1 || modules[0].Description.Provider != action.Choria || modules[0].Description.Version != "1.0.0" {
		n.t.Fatalf("modules %v, problems %s", modules, problems)
	}
	return modules[0].Actions["sing"]
}

// perform prepares an order and does what its command would.
func (n node) perform(a orders.Action, song string) (jsontext.Value, error) {
	n.t.Helper()
	params := pxp.Data(map[string]string{"song": song})
	if err := a.Check(params); err != nil {
		return nil, err
	}
	command, err := a.Prepare(n.t.Context(), orders.Order{Transaction: "0b", Requester: "pcp:///server", Params: params, Place: n.t.TempDir()})
	if err != nil {
		return nil, err
	}
	if strings.Join(append([]string{command.Path}, command.Args...), " ") != "/bin/tutti errand choria" {
		n.t.Errorf("the command: %v", command)
	}
	var out bytes.Buffer
	if err := agentmodules.Main(bytes.NewReader(command.Input), &out); err != nil {
		n.t.Fatal(err)
	}
	exit := 0
	output := orders.Output{Begun: true, Exit: &exit, Stdout: out.Bytes()}
	a.Ended(n.t.Context(), output)
	return a.Results(output)
}

func TestTheRequestOfAChoriaModule(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	sing := n.choir(`cp "$1" ` + n.cfg + `/seen; cp "$CHORIA_EXTERNAL_FACTS" ` + n.cfg + `/facts
[ "$1 $2 $3" = "$CHORIA_EXTERNAL_REQUEST $CHORIA_EXTERNAL_REPLY $CHORIA_EXTERNAL_PROTOCOL" ] || exit 3
echo "{\"data\":{\"sung\":\"$CHORIA_EXTERNAL_CONFIG $CHORIA_EXTERNAL_PROTOCOL\"}}" > "$2"`)
	if sing.Timeout.Seconds() != 20 {
		t.Errorf("it may take %s", sing.Timeout)
	}
	results, err := n.perform(sing, "x")
	want := `{"sung":"` + n.cfg + `/choir.cfg io.choria.mcorpc.external.v1.rpc_request","voices":4}`
	if err != nil || string(results) != want {
		t.Errorf("%s, %v, want %s", results, err, want)
	}
	text, err := os.ReadFile(filepath.Join(n.cfg, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	var asked map[string]any
	if err := json.Unmarshal(text, &asked); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"$schema": "https://choria.io/schemas/mcorpc/external/v1/rpc_request.json", "protocol": "io.choria.mcorpc.external.v1.rpc_request", "agent": "choir",
		"action": "sing", "requestid": "0b", "senderid": "pcp:///server", "callerid": "pcp=pcp:///server", "collective": "mcollective", "ttl": 60.0,
	} {
		if asked[key] != want {
			t.Errorf("%s is %v", key, asked[key])
		}
	}
	if song := asked["data"].(map[string]any)["song"]; song != "x" || asked["msgtime"].(float64) < 1e9 || len(asked) != 11 {
		t.Errorf("the request: %s", text)
	}
	if facts, err := os.ReadFile(filepath.Join(n.cfg, "facts")); err != nil || string(facts) != "{}" {
		t.Errorf("facts: %s, %v", facts, err)
	}
}

func TestFactsOfAChoriaModule(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write(filepath.Join(n.dir, "choir.json"), choir, 0o600)
	n.module("choir", activated(`echo '{"data":{"sung":'"$(cat "$CHORIA_EXTERNAL_FACTS")"'}}' > "$2"`))
	cfg := n.config()
	cfg.Facts = func() jsontext.Value { return jsontext.Value(`"of this node"`) }
	m, err := agentmodules.LoadFile(t.Context(), cfg, filepath.Join(n.dir, "choir"))
	if err != nil {
		t.Fatal(err)
	}
	if results, err := n.perform(m.Actions["sing"], "x"); err != nil || string(results) != `{"sung":"of this node","voices":4}` {
		t.Errorf("%s, %v", results, err)
	}
}

func TestRepliesOfAChoriaModule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, results, aborted, failed string }{
		{`echo '{"statuscode":0,"data":{"sung":"la","voices":null,"more":1}}' > "$2"`, `{"more":1,"sung":"la","voices":4}`, "", ""},
		{`echo '{"statuscode":0}' > "$2"`, `{"voices":4}`, "", ""},
		{`echo '{"statuscode":1,"statusmsg":" no breath ","data":{"sung":"l"}}' > "$2"`, `{"sung":"l"}`, "no breath", ""},
		{`echo '{"statuscode":1}' > "$2"`, "", "it failed without a word", ""},
		{`echo '{"statuscode":4,"statusmsg":"no such song"}' > "$2"`, "", "", "replied with the status 4: no such song"},
		{`echo '{"statuscode":0,"data":{"sung":5}}' > "$2"`, "", "", "replied with data that its DDL does not allow: field sung: it must be of the type string"},
		{`echo '{"statuscode":0,"data":[]}' > "$2"`, "", "", "replied with data that are no object"},
		{`echo '{' > "$2"`, "", "", "did not reply: its program's reply is not JSON of the right shape"},
		{`echo oh dear >&2`, "", "", "did not reply: its program wrote no reply; it says: oh dear"},
		{`rm "$2"`, "", "", "did not reply: open "},
		{`head -c 5000000 /dev/zero > "$2"`, "", "", "has more than 4194304 bytes"},
		{`echo '{"statuscode":0}' > "$2"; exit 7`, "", "", "did not reply: its program ended with an error: exit status 7"},
	} {
		t.Run(c.body, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			results, err := n.perform(n.choir(c.body), "x")
			aborted, _ := errors.AsType[*orders.Aborted](err)
			switch {
			case c.aborted != "":
				if aborted == nil || aborted.Message != c.aborted || string(aborted.Data) != c.results {
					t.Errorf("%s, %v", results, err)
				}
			case c.failed != "":
				if err == nil || aborted != nil || !strings.Contains(err.Error(), c.failed) {
					t.Errorf("%s, %v", results, err)
				}
			case err != nil || string(results) != c.results:
				t.Errorf("%s, %v", results, err)
			}
		})
	}
}

func TestWhatAChoriaModulePrintsIsLogged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	sing := n.choir(`echo '{}' > "$2"; head -c 20000 /dev/zero | tr '\0' a; printf 'b\0c\377' >&2`)
	if _, err := n.perform(sing, "x"); err != nil {
		t.Fatal(err)
	}
	log := n.log.String()
	if a := strings.Count(log, "a"); a < 8<<10 || a > 9<<10 || !strings.Contains(log, "aaa…") ||
		!strings.Contains(log, `level=ERROR msg="module printed on standard error" module=choir action=sing text="b�c�"`) {
		t.Errorf("%d times a: %.200s … %s", a, log, log[max(0, len(log)-300):])
	}
}

func TestInputOfAChoriaModule(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if _, err := n.perform(n.choir(""), "a;b"); fault.Detail(err) != "field song: it must be a text without the characters ` $ ; | & > <" {
		t.Error(err)
	}
}

func TestFoldersOfExecutables(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write(filepath.Join(n.dir, "choir.json"), choir, 0o600)
	if _, problems := n.load(); problems != "choir: it describes a module, and there is no program choir beside it\n" {
		t.Error(problems)
	}
	platform := "choir-" + runtime.GOOS + "_" + runtime.GOARCH
	programtest.Write(t, filepath.Join(n.dir, "choir", "choir-plan9_mips"), "")
	if _, problems := n.load(); problems != "choir: the folder has no "+platform+", which this machine could run\n" {
		t.Error(problems)
	}
	n.write(filepath.Join(n.dir, "choir", platform), "", 0o600)
	if _, problems := n.load(); !strings.Contains(problems, platform+" is not executable: chmod +x") {
		t.Error(problems)
	}
	if err := os.Remove(filepath.Join(n.dir, "choir", platform)); err != nil {
		t.Fatal(err)
	}
	programtest.Write(t, filepath.Join(n.dir, "choir", platform), "#!/bin/sh\n"+activated(`echo '{"data":{"sung":"la"}}' > "$2"`))
	modules, problems := n.load()
	if len(modules) != 1 || problems != "" {
		t.Fatalf("%v, %s", modules, problems)
	}
	if results, err := n.perform(modules[0].Actions["sing"], "x"); err != nil || string(results) != `{"sung":"la","voices":4}` {
		t.Errorf("%s, %v", results, err)
	}
}

func TestChoriaModulesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct{ ddl, body string }{
		"it says that it is not to be activated on this node":      {choir, `echo '{"activate":false}' > "$2"`},
		"its answer is not JSON of the right shape":                {choir, `echo '{"activate":"yes"}' > "$2"`},
		"its program wrote no reply":                               {choir, ``},
		"its program ended with an error: exit status 5":           {choir, `echo '{"activate":true}' > "$2"; exit 5`},
		"it did not say within 50ms whether it is to be activated": {choir, `sleep 60`},
		"choir.json: line 1: it is not JSON":                       {"{", ""},
		"choir.json: line 1: no actions are described":             {"{}", ""},
		"the program would be given what its DDL does not allow":   {strings.Replace(choir, "shellsafe", "(?=x)", 1), ""},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.write(filepath.Join(n.dir, "choir.json"), c.ddl, 0o600)
			n.module("choir", c.body)
			cfg := n.config()
			if strings.Contains(want, "50ms") {
				cfg.Activation = 50e6
			}
			modules, problems, err := agentmodules.Load(t.Context(), cfg)
			if err != nil || len(modules) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Reason, want) {
				t.Errorf("modules %v, problems %v, %v", modules, problems, err)
			}
			if _, err := agentmodules.LoadFile(t.Context(), cfg, filepath.Join(n.dir, "choir")); fault.Of(err) != fault.Invalid ||
				!strings.Contains(fault.Detail(err), want) {
				t.Errorf("alone: %v", err)
			}
		})
	}
}

func TestNoModuleAtAPath(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write(filepath.Join(n.dir, "readme.txt"), "", 0o700)
	n.write(filepath.Join(n.dir, "plain"), "", 0o600)
	for _, name := range []string{"readme.txt", "plain", "nothing", "."} {
		if _, err := agentmodules.LoadFile(t.Context(), n.config(), filepath.Join(n.dir, name)); fault.Of(err) != fault.Invalid ||
			!strings.Contains(fault.Detail(err), "is no module") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooManyModules(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.module("m000", prints(goodMetadata))
	for i := range 100 {
		if err := os.Link(filepath.Join(n.dir, "m000"), filepath.Join(n.dir, "n"+strings.Repeat("x", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	modules, problems := n.load()
	if len(modules) != 100 || problems != "n"+strings.Repeat("x", 100)+": there are too many: 100 are loaded at most\n" {
		t.Errorf("%d modules, problems %s", len(modules), problems)
	}
}

// A module is looked at before each use: one that was changed is read anew, and used only if it describes itself as before.
func TestAModuleThatWasChanged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.module("band", prints(strings.Replace(goodMetadata, `"configuration"`, `"x"`, 1)))
	play := n.play()
	prepare := func() (string, error) {
		command, err := play.Prepare(t.Context(), orders.Order{Params: jsontext.Value(`{"tune":"x"}`)})
		return string(command.Input), err
	}
	if input, err := prepare(); err != nil || input != `{"input":{"tune":"x"}}` || n.log.Len() > 0 {
		t.Fatal(input, err)
	}
	n.write(filepath.Join(n.cfg, "band.conf"), `{"volume":11}`, 0o600)
	if input, err := prepare(); err != nil || input != `{"input":{"tune":"x"},"configuration":{"volume":11}}` ||
		!strings.Contains(n.log.String(), "it is loaded anew") {
		t.Errorf("with a configuration: %s, %v\n%s", input, err, n.log)
	}
	before := n.log.Len()
	if _, err := prepare(); err != nil || n.log.Len() > before {
		t.Errorf("it is loaded anew each time: %v\n%s", err, n.log)
	}
	n.module("band", "# another text\n"+prints(strings.Replace(goodMetadata, `"configuration"`, `"x"`, 1)))
	if input, err := prepare(); err != nil || input != `{"input":{"tune":"x"},"configuration":{"volume":11}}` {
		t.Errorf("another program with the same description: %s, %v", input, err)
	}
	n.module("band", prints(strings.Replace(goodMetadata, "plays", "hums", 1)))
	_, err := prepare()
	if fault.Of(err) != fault.Unavailable ||
		fault.Detail(err) != "the module band was changed on this node and describes itself otherwise now; restart the node's agent, which loads it anew" {
		t.Errorf("another description: %v", err)
	}
	n.module("band", "exit 3")
	if _, err := prepare(); fault.Of(err) != fault.Unavailable ||
		!strings.Contains(fault.Detail(err), "was changed on this node and cannot be used any more: its metadata: exit status 3") {
		t.Errorf("a broken one: %v", err)
	}
	if err := os.Remove(filepath.Join(n.dir, "band")); err != nil {
		t.Fatal(err)
	}
	if _, err := prepare(); fault.Of(err) != fault.Unavailable {
		t.Errorf("none: %v", err)
	}
}

func TestAChoriaModuleThatWasChanged(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	sing := n.choir(`echo '{"data":{"sung":"la"}}' > "$2"`)
	n.write(filepath.Join(n.dir, "choir.json"), strings.Replace(choir, "shellsafe", ".", 1), 0o600)
	if _, err := n.perform(sing, "x"); fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "describes itself otherwise now") {
		t.Errorf("another DDL: %v", err)
	}
	n.write(filepath.Join(n.dir, "choir.json"), choir, 0o600)
	n.module("choir", activated(`echo '{"data":{"sung":"do re mi"}}' > "$2"`))
	if results, err := n.perform(sing, "x"); err != nil || string(results) != `{"sung":"do re mi","voices":4}` {
		t.Errorf("another program: %s, %v", results, err)
	}
	n.module("choir", `echo '{"activate":false}' > "$2"`)
	if _, err := n.perform(sing, "x"); fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "not to be activated") {
		t.Errorf("one that does not want any more: %v", err)
	}
}
