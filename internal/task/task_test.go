package task_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/task"
	"github.com/tutti-project/tutti/internal/task/tasktest"
)

var world = tasktest.Version{
	"apache/tasks/init.rb":     "#!/usr/bin/ruby",
	"apache/tasks/init.json":   `{"description": "Restart it", "input_method": "stdin", "supports_noop": true, "parameters": {"action": {"type": "Enum[reload, restart]"}, "wait": {"type": "Integer[0, 60]", "default": 5}, "port": {"type": "Optional[Apache::Port]"}}}`,
	"apache/tasks/plain":       "#!/bin/sh",
	"apache/tasks/README.md":   "no task",
	"apache/tasks/Upper.sh":    "no task",
	"apache/tasks/sub/deep.sh": "no task",
	"apache/types/port.pp":     "type Apache::Port = Integer[1, 65535]",
	"multi/tasks/many.json":    `{"implementations": [{"name": "many_sh.sh", "requirements": ["shell"], "files": ["multi/lib/"]}, {"name": "many_ps.ps1", "input_method": "powershell"}], "files": ["apache/files/a.txt", "multi/files/conf/"], "private": true}`,
	"multi/tasks/both.json":    `{"implementations": [{"name": "both.sh"}, {"name": "both.rb"}], "files": ["multi/tasks/both.sh"], "private": true}`,
	"multi/tasks/own.json": `{"implementations": [
		{"name": "both.rb", "files": ["multi/tasks/both.sh"]},
		{"name": "both.sh", "files": ["multi/lib/", "multi/tasks/"]}
	], "private": true}`,
	"multi/tasks/dir.json":           `{"files": ["multi/lib/", "multi/tasks/dir.sh", "multi/tasks/both.json"], "private": true}`,
	"multi/tasks/dir.sh":             "",
	"multi/tasks/both.sh":            "",
	"multi/tasks/both.rb":            "",
	"multi/tasks/many_sh.sh":         "",
	"multi/tasks/many_ps.ps1":        "",
	"multi/lib/helper.rb":            "",
	"multi/lib/puppet/x.rb":          "",
	"multi/files/conf/one":           "",
	"multi/files/other":              "",
	"apache/files/a.txt":             "",
	"broken/tasks/two.sh":            "",
	"broken/tasks/two.py":            "",
	"broken/tasks/none.json":         `{}`,
	"broken/tasks/text.json":         `{"description": 5}`,
	"broken/tasks/text.sh":           "",
	"broken/tasks/list.json":         `[]`,
	"broken/tasks/list.sh":           "",
	"broken/tasks/type.json":         `{"parameters": {"a": {"type": "Strin[1"}}}`,
	"broken/tasks/type.sh":           "",
	"broken/tasks/name.json":         `{"parameters": {"A b": {}}}`,
	"broken/tasks/name.sh":           "",
	"broken/tasks/method.json":       `{"input_method": "telepathy"}`,
	"broken/tasks/method.sh":         "",
	"broken/tasks/missing.json":      `{"implementations": [{"name": "gone.sh"}]}`,
	"broken/tasks/file.json":         `{"files": ["multi/files/conf"]}`,
	"broken/tasks/file.sh":           "",
	"broken/tasks/slash.json":        `{"files": ["multi/files"]}`,
	"broken/tasks/slash.sh":          "",
	"broken/tasks/place.json":        `{"files": ["multi/manifests/init.pp"]}`,
	"broken/tasks/place.sh":          "",
	"broken/tasks/climb.json":        `{"files": ["multi/files/../lib/helper.rb"]}`,
	"broken/tasks/climb.sh":          "",
	"secret/tasks/keep.sh":           "",
	"secret/tasks/keep.json":         `{"parameters": {"password": {"type": "Struct[{user => String}]", "sensitive": true}, "token": {"type": "Optional[Sensitive[String[8]]]"}}}`,
	"secret/tasks/nothing.sh":        "",
	"secret/tasks/nothing.json":      `{"parameters": {}}`,
	"alias/tasks/x.sh":               "",
	"alias/tasks/x.json":             `{"parameters": {"a": {"type": "Alias::Wrong"}}}`,
	"alias/types/wrong.pp":           "type Alias::Other = String",
	"alias/tasks/undefined_one.sh":   "",
	"alias/tasks/undefined_one.json": `{"parameters": {"a": {"type": "Nowhere::Type"}}}`,
}

func TestList(t *testing.T) {
	t.Parallel()
	list, err := task.List(t.Context(), world)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		line := s.Name
		if s.Private {
			line += " (private)"
		}
		if s.Err != nil {
			line += ": " + s.Err.Error()
		}
		got = append(got, line)
	}
	want := []string{
		"alias::undefined_one",
		"alias::x",
		"apache",
		"apache::plain",
		`broken::climb: the task broken::climb needs "multi/files/../lib/helper.rb", which is not there; a directory is named with a slash at its end`,
		`broken::file: the task broken::file needs "multi/files/conf", which is not there; a directory is named with a slash at its end`,
		"broken::list: broken/tasks/list.json: task metadata is not as expected: it must be an object, not a array",
		"broken::method: broken/tasks/method.json: input_method is stdin, environment, both or powershell, not \"telepathy\"",
		`broken::missing: the task broken::missing names the implementation "gone.sh", which is not in its module's tasks directory`,
		`broken::name: broken/tasks/name.json: the parameter "A b": names start with a lower-case letter and have only those, digits and underscores`,
		"broken::none: the task broken::none has metadata and no executable",
		`broken::place: the task broken::place needs the file "multi/manifests/init.pp", but files are named module/files, lib, scripts or tasks/path`,
		`broken::slash: the task broken::slash needs "multi/files", which is not there; a directory is named with a slash at its end`,
		"broken::text: broken/tasks/text.json: task metadata is not as expected: the field description must not be a number",
		"broken::two: the task broken::two has 2 executables: name them as implementations in its metadata",
		`broken::type: broken/tasks/type.json: the type "Strin[1" of the parameter a is wrong at character 8: "," is expected, not the end`,
		"multi::both (private)",
		"multi::dir (private)",
		"multi::many (private)",
		"multi::many_ps",
		"multi::many_sh",
		"multi::own (private)",
		"secret::keep",
		"secret::nothing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFilesOfATask(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"apache":       {"apache/tasks/init.rb"},
		"apache::init": {"apache/tasks/init.rb"},
		"multi::many": {
			"multi/tasks/many_sh.sh", "multi/tasks/many_ps.ps1", "apache/files/a.txt", "multi/files/conf/one", "multi/lib/helper.rb", "multi/lib/puppet/x.rb",
		},
	} {
		found, err := task.Find(t.Context(), world, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, f := range found.Files {
			got = append(got, f.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Agents look for executables by plain names and for all other files by module/directory/path.
func TestNamesOfFilesOnNodes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"apache":      {"init.rb"},
		"multi::many": {"many_sh.sh", "many_ps.ps1", "apache/files/a.txt", "multi/files/conf/one", "multi/lib/helper.rb", "multi/lib/puppet/x.rb"},
		"multi::both": {"both.sh", "both.rb", "multi/tasks/both.sh"},
	} {
		found, err := task.Find(t.Context(), world, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, n := range found.Needed() {
			got = append(got, n.Filename)
			if n.File.Digest == "" {
				t.Errorf("%s has no content", n.Filename)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// No executable is named among the files that it needs itself: pxp-agent 1.15 fails with "File exists" then. Everything else is as written.
func TestNoExecutableIsBesideItself(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"apache":      ``,
		"multi::many": `apache/files/a.txt multi/files/conf/; many_sh.sh: multi/lib/; many_ps.ps1:`,
		"multi::both": `; both.sh: both.sh; both.rb: multi/tasks/both.sh`,
		"multi::own": `; both.rb: multi/tasks/both.sh; both.sh: multi/lib/helper.rb multi/lib/puppet/x.rb multi/tasks/both.json multi/tasks/both.rb ` +
			`multi/tasks/dir.json multi/tasks/dir.sh multi/tasks/many.json multi/tasks/many_ps.ps1 multi/tasks/many_sh.sh multi/tasks/own.json`,
		"multi::dir": `multi/lib/helper.rb multi/lib/puppet/x.rb multi/tasks/both.json`,
	} {
		found, err := task.Find(t.Context(), world, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		before, _ := json.Marshal(found.Metadata)
		told := found.Told()
		got := strings.Join(told.Files, " ")
		for _, i := range told.Implementations {
			got += strings.TrimRight("; "+i.Name+": "+strings.Join(i.Files, " "), " ")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if after, _ := json.Marshal(found.Metadata); string(after) != string(before) {
			t.Errorf("%s was %s and is %s", name, before, after)
		}
	}
}

func TestUnknownTasks(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]fault.Kind{
		"apache::none": fault.NotFound, "none": fault.NotFound, "none::x": fault.NotFound, "apache::sub/deep": fault.Invalid,
		"": fault.Invalid, "../etc": fault.Invalid, "a::b::c": fault.Invalid, "Apache": fault.Invalid,
	} {
		if _, err := task.Find(t.Context(), world, name); fault.Of(err) != want || err == nil {
			t.Errorf("%q: got %v, want %v", name, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ task, given, want, err string }{
		{"apache", `{"action": "reload"}`, `{"action":"reload","wait":5}`, ""},
		{"apache", `{"action": "reload", "wait": 9, "port": 80, "_noop": true}`, `{"_noop":true,"action":"reload","port":80,"wait":9}`, ""},
		{"apache", `{"action": "reload", "port": null}`, `{"action":"reload","port":null,"wait":5}`, ""},
		{"apache", ``, ``, "the parameters do not fit the task apache: action (Enum['reload', 'restart']) is required; see `tutti task show apache`"},
		{
			"apache", `{"action": "kill", "wait": 1.5, "port": 0, "colour": 1}`, ``,
			"the parameters do not fit the task apache: there is no parameter \"colour\"; action expects Enum['reload', 'restart'], got String; " +
				"port expects Apache::Port = Integer[1, 65535], got Integer; wait expects Integer[0, 60], got Float; see `tutti task show apache`",
		},
		{"apache", `[]`, ``, `parameters are one JSON object, such as {"name": "ntp"}`},
		{"apache", `{} {}`, ``, `parameters are one JSON object, such as {"name": "ntp"}`},
		{"apache", `null`, ``, `parameters are one JSON object, such as {"name": "ntp"}`},
		{"apache::plain", `{"anything": [1, 12345678901234567890]}`, `{"anything":[1,12345678901234567890]}`, ""},
		{"secret::nothing", `{"a": 1}`, ``, "the parameters do not fit the task secret::nothing: there is no parameter \"a\"; see `tutti task show secret::nothing`"},
		{
			"secret::keep", `{"password": {"hunter2": 1}, "token": "hunter2"}`, ``,
			"the parameters do not fit the task secret::keep: password expects Struct[{'user' => String}]; " +
				"token expects Optional[Sensitive[String[8]]]; see `tutti task show secret::keep`",
		},
		{"alias::x", `{"a": 1}`, ``, "the parameter a cannot be checked: alias/types/wrong.pp defines Alias::Other, not Alias::Wrong"},
		{"alias::undefined_one", `{"a": 1}`, ``, "the parameter a cannot be checked: the type Nowhere::Type is not defined: no module has nowhere/types/type.pp"},
	} {
		found, err := task.Find(t.Context(), world, c.task)
		if err != nil {
			t.Fatal(err)
		}
		got, err := found.Check(t.Context(), world, json.RawMessage(c.given))
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", c.task, c.given, diff)
		}
		if diff := cmp.Diff(c.err, text(err)); diff != "" {
			t.Errorf("%s with %s (-want +got):\n%s", c.task, c.given, diff)
		}
		if err != nil && fault.Of(err) != fault.Invalid {
			t.Errorf("%s with %s: %v is not Invalid", c.task, c.given, err)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	found, err := task.Find(t.Context(), world, "secret::keep")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range found.Metadata.Parameters {
		if !p.Secret() {
			t.Errorf("%s is not secret", name)
		}
	}
	if p := found.Metadata.Parameters["token"]; p.Required() {
		t.Error("token is required")
	}
	if p := found.Metadata.Parameters["password"]; !p.Required() {
		t.Error("password is not required")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzParseMetadata(f *testing.F) {
	for name, content := range world {
		if strings.HasSuffix(name, ".json") {
			f.Add([]byte(content), `{"a": 1}`)
		}
	}
	f.Fuzz(func(t *testing.T, source []byte, given string) {
		m, err := task.ParseMetadata(source)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Fatalf("%v is not Invalid", err)
			}
			return
		}
		for _, p := range m.Parameters {
			p.Required()
			p.Secret()
		}
		if _, err := (task.Task{Name: "x", Metadata: m}).Check(t.Context(), tasktest.Version{}, json.RawMessage(given)); err != nil &&
			fault.Of(err) != fault.Invalid {
			t.Fatalf("%v is not Invalid", err)
		}
	})
}
