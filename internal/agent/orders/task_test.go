package orders_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/sim/machine"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// prepared is the program that a module's action runs on a system.
func prepared(t *testing.T, os, module, params string) (orders.Command, error) {
	t.Helper()
	node := orders.Node{OS: os, Cache: &machine.Cache{}, PuppetRun: []string{"/tutti", "errand", "puppet"}}
	for _, m := range orders.Modules(node) {
		if m.Name == module {
			return m.Actions["run"].Prepare(t.Context(), orders.Order{Params: jsontext.Value(params), Place: "/spool/t1"})
		}
	}
	t.Fatalf("there is no module %s", module)
	return orders.Command{}, nil
}

// aTask is the parameters of a task; rest is more keys, which begin with a comma.
func aTask(input, rest string, files ...string) string {
	var list []string
	for _, name := range files {
		list = append(list, file(name))
	}
	return fmt.Sprintf(`{"task":"m::t","input":%s,"files":[%s]%s}`, input, strings.Join(list, ","), rest)
}

// cached is where the fake cache has a file.
func cached(name string) string {
	return fmt.Sprintf("/cache/%064x/%s", len(name), filepath.Base(name))
}

func TestTaskInput(t *testing.T) {
	t.Parallel()
	const input = `{"name":"ntp","count": 3,"tags":[ "a", "b" ],"nested":{"x": null},"password":"é \" \n","_noop":true}`
	const text = `{"_noop":true,"_task":"m::t","count":3,"name":"ntp","nested":{"x":null},"password":"é \" \n","tags":["a","b"]}`
	env := []string{"PT__noop=true", "PT__task=m::t", "PT_count=3", "PT_name=ntp", `PT_nested={"x":null}`, "PT_password=é \" \n", `PT_tags=["a","b"]`}
	for method, want := range map[string]orders.Command{
		"":            {Path: cached("init.sh"), Input: []byte(text), Env: env},
		"both":        {Path: cached("init.sh"), Input: []byte(text), Env: env},
		"stdin":       {Path: cached("init.sh"), Input: []byte(text)},
		"environment": {Path: cached("init.sh"), Env: env},
	} {
		rest := ""
		if method != "" {
			rest = `,"input_method":"` + method + `"`
		}
		got, err := prepared(t, "linux", "task", aTask(input, rest, "init.sh"))
		if err != nil {
			t.Fatal(err)
		}
		want.Args = []string{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("method %q (-want +got):\n%s", method, diff)
		}
	}
}

func TestTaskInputThatCannotBe(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		aTask(`{}`, `,"input_method":"telepathy"`, "init.sh"):                                   "unsupported task input method: telepathy",
		aTask(`{"a":"x\u0000y"}`, ``, "init.sh"):                                                `field input: "a" cannot be an environment variable`,
		aTask(`{"a=b":1}`, ``, "init.sh"):                                                       `field input: "a=b" cannot be an environment variable`,
		aTask(`{"a":1,"a":2}`, ``, "init.sh"):                                                   "invalid data",
		aTask(`{}`, `,"metadata":{"implementations":[{"name":"b.sh"}]}`, "a.sh"):                "'b.sh' file requested by implementation not found",
		aTask(`{}`, `,"metadata":{"files":["m/files/x"]}`, "a.sh"):                              "'m/files/x' file requested as additional task dependency not found",
		aTask(`{}`, `,"metadata":{"files":["m/files/"]}`, "a.sh"):                               "'m/files/' file requested as additional task dependency not found",
		strings.Replace(aTask(`{}`, `,"metadata":{"files":["a.sh"]}`, "a.sh"), "m::", "../", 1): "does not begin with a module's name",
	} {
		_, err := prepared(t, "linux", "task", params)
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%s: got %v, want %s", params, err, want)
		}
	}
}

func TestTaskImplementations(t *testing.T) {
	t.Parallel()
	const impls = `"implementations":[{"name":"t.ps1","requirements":["powershell"]},{"name":"t.py","requirements":["shell","python"],"input_method":"stdin"},{"name":"t.sh","requirements":["shell"]}]`
	files := []string{"t.sh", "t.ps1", "t.py"}
	for _, c := range []struct{ os, rest, want string }{
		{"linux", `,"metadata":{` + impls + `}`, cached("t.sh")},
		{"linux", `,"metadata":{"features":["python"],` + impls + `}`, cached("t.py")},
		// With metadata, features beside it mean nothing.
		{"linux", `,"features":["python"],"metadata":{` + impls + `}`, cached("t.sh")},
		{"windows", `,"metadata":{` + impls + `}`, "powershell.exe"},
		{"linux", ``, cached("t.sh")}, // the first file
	} {
		got, err := prepared(t, c.os, "task", aTask(`{}`, c.rest, files...))
		if err != nil || got.Path != c.want {
			t.Errorf("%s %s: got %s, %v", c.os, c.rest, got.Path, err)
		}
		if strings.HasSuffix(c.want, ".py") && (got.Env != nil || string(got.Input) != `{"_task":"m::t"}`) {
			t.Errorf("the implementation's input method: %+v", got)
		}
	}
	_, err := prepared(t, "linux", "task",
		aTask(`{}`, `,"metadata":{"features":["x"],"implementations":[{"name":"t.ps1","requirements":["powershell"]}]}`, files...))
	if fault.Detail(err) != "no implementations match supported features: puppet-agent, shell, x" {
		t.Errorf("got %v", err)
	}
}

func TestTaskWithFiles(t *testing.T) {
	t.Parallel()
	got, err := prepared(t, "linux", "task",
		aTask(`{}`, `,"metadata":{"files":["other/lib/","m/files/x"],"input_method":"both"}`, "t.sh", "other/lib/a.rb", "other/lib/deep/b.rb",
			"m/files/x", "m/files/unasked"))
	if err != nil {
		t.Fatal(err)
	}
	dir := regexp.MustCompile(`^(/spool/t1/temp_task_[0-9a-f-]{36})/m/tasks/t\.sh$`).FindStringSubmatch(got.Path)
	if dir == nil {
		t.Fatalf("the task is run at %s", got.Path)
	}
	if want := `{"_installdir":"` + dir[1] + `","_task":"m::t"}`; string(got.Input) != want {
		t.Errorf("input %s, want %s", got.Input, want)
	}
	if !slices.Contains(got.Env, "PT__installdir="+dir[1]) {
		t.Errorf("environment %q", got.Env)
	}
}

func TestTaskOnWindows(t *testing.T) {
	t.Parallel()
	flags := []string{"-NoProfile", "-NonInteractive", "-NoLogo", "-ExecutionPolicy", "Bypass"}
	for name, want := range map[string][]string{
		"t.rb":  {"ruby", cached("t.rb")},
		"t.pp":  {"puppet", "apply", cached("t.pp")},
		"t.exe": {cached("t.exe")},
		"t.PS1": append(append([]string{"powershell.exe"}, flags...), "-File", cached("t.PS1")),
	} {
		got, err := prepared(t, "windows", "task", aTask(`{}`, `,"input_method":"stdin"`, name))
		if diff := cmp.Diff(want, append([]string{got.Path}, got.Args...)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// A PowerShell script gets named parameters from a shim; they are in no argument.
func TestTaskInPowerShell(t *testing.T) {
	t.Parallel()
	got, err := prepared(t, "windows", "task", aTask(`{"password":"hidden"}`, ``, "it's.ps1"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Path != "powershell.exe" || got.Args[len(got.Args)-2] != "-EncodedCommand" || got.Env != nil ||
		string(got.Input) != `{"_task":"m::t","password":"hidden"}` {
		t.Fatalf("the command: %+v", got)
	}
	raw, err := base64.StdEncoding.DecodeString(got.Args[len(got.Args)-1])
	if err != nil || len(raw)%2 != 0 {
		t.Fatal(err, len(raw))
	}
	var text strings.Builder
	for i := 0; i < len(raw); i += 2 {
		text.WriteRune(rune(raw[i]) | rune(raw[i+1])<<8) // the shim is ASCII
	}
	first, _, _ := strings.Cut(text.String(), "\n")
	if want := "$task = '" + strings.ReplaceAll(cached("it's.ps1"), "'", "''") + "'"; first != want {
		t.Errorf("the shim begins with %s, want %s", first, want)
	}
	for _, part := range []string{"OpenStandardInput", "Get-Command -Name $task", "& $task @parameters", "exit $LASTEXITCODE"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the shim has no %s", part)
		}
	}
	if strings.Contains(text.String(), "hidden") {
		t.Error("the shim holds a parameter")
	}
	if length := len(strings.Join(got.Args, " ")); length > 8191 { // what cmd.exe takes
		t.Errorf("the command line has %d characters", length)
	}
}

func TestOtherModules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		os, module, params string
		want               orders.Command
	}{
		{"linux", "command", `{"command":"echo \"$HOME\""}`, orders.Command{Path: "/bin/sh", Args: []string{"-c", `echo "$HOME"`}}},
		{"windows", "command", `{"command":"dir"}`, orders.Command{
			Path: "powershell.exe", Args: []string{"-NoProfile", "-NonInteractive", "-NoLogo", "-ExecutionPolicy", "Bypass", "-Command", "dir"},
		}},
		{"linux", "script", `{"script":` + file("a.sh") + `,"arguments":["x y","--z",""]}`, orders.Command{Path: cached("a.sh"), Args: []string{"x y", "--z", ""}}},
		{"windows", "script", `{"script":` + file("a.rb") + `,"arguments":["x"]}`, orders.Command{Path: "ruby", Args: []string{cached("a.rb"), "x"}}},
		{"linux", "pxp-module-puppet", `{"env":[],"flags":["--noop"]}`, orders.Command{
			Path: "/tutti", Args: []string{"errand", "puppet"}, Input: []byte(`{"input":{"env":[],"flags":["--noop"]},"configuration":{"puppet_bin":"puppet"}}`),
		}},
	} {
		got, err := prepared(t, c.os, c.module, c.params)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s on %s: %v (-want +got):\n%s", c.module, c.os, err, diff)
		}
	}
}

func TestFileDownload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t, nil)
		n.cache.Missing = map[string]error{fmt.Sprintf("%064x", 9): fault.New(fault.Invalid, `The downloaded file "/x" has a SHA that differs from the provided SHA`)}
		entry := func(kind string, sha int) string {
			return fmt.Sprintf(`{"kind":%q,"destination":"/x","link_source":"y","uri":{"path":"/f","params":{}},"sha256":"%064x"}`, kind, sha)
		}
		n.order("t1", "file", "download", `{"files":[`+entry("directory", 1)+`,`+entry("file", 1)+`,`+entry("symlink", 1)+`]}`)
		n.want("rpc_provisional_response", `rpc_non_blocking_response {"exitcode":0,"stdout":"downloaded"}`)
		n.order("t2", "file", "download", `{"files":[`+entry("file", 2)+`,`+entry("file", 9)+`,`+entry("file", 3)+`]}`)
		n.want("rpc_provisional_response", `rpc_error_message Failed to execute the task for the non blocking 'file download' request (transaction t2). Error: The downloaded file "/x" has a SHA that differs from the provided SHA`)
		var made []string
		for _, e := range n.cache.Made() {
			made = append(made, e.Kind)
		}
		if diff := cmp.Diff([]string{"directory", "file", "symlink", "file"}, made); diff != "" {
			t.Errorf("made (-want +got):\n%s", diff)
		}
	})
}

func TestPuppetResults(t *testing.T) {
	t.Parallel()
	for stdout, want := range map[string]string{
		`{"status":"changed"}` + "\n": `{"status":"changed"}`,
		"":                            "null",
		"oops":                        "!returned invalid JSON on stdout - stderr: \nsome words",
		`{"a":1} trailing`:            "!returned invalid JSON on stdout - stderr: \nsome words",
	} {
		got, err := orders.Results(orders.Output{Stdout: []byte(stdout), Stderr: []byte("some words")})
		if says, bad := strings.CutPrefix(want, "!"); bad {
			if err == nil || err.Error() != says {
				t.Errorf("%q: %s, %v", stdout, got, err)
			}
		} else if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", stdout, got, err)
		}
	}
}

func FuzzTask(f *testing.F) {
	f.Add([]byte(aTask(`{"a":"b"}`, `,"metadata":{"files":["m/"],"implementations":[{"name":"t.sh"}]}`, "t.sh", "m/x")))
	f.Add([]byte(aTask(`{"a":[1]}`, `,"input_method":"powershell"`, "t.sh")))
	f.Fuzz(func(t *testing.T, params []byte) {
		if _, err := pxp.ParseTask(params); err != nil {
			return
		}
		c, err := prepared(t, "linux", "task", string(params))
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Errorf("an error of kind %s: %v", fault.Of(err), err)
			}
			return
		}
		for _, text := range append([]string{c.Path}, append(c.Args, c.Env...)...) {
			if strings.ContainsRune(text, 0) {
				t.Errorf("a byte 0 in %q", text)
			}
		}
		if !strings.HasPrefix(filepath.Clean(c.Path), "/cache/") && !strings.HasPrefix(filepath.Clean(c.Path), "/spool/t1/temp_task_") && c.Path != "pwsh" {
			t.Errorf("the program is %s", c.Path)
		}
	})
}
