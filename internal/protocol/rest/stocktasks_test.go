package rest_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// stockTasks are the modules' own tasks with several implementations, as their metadata describes them.
var stockTasks = map[string]string{
	"package/tasks/init.json": `{"input_method": "stdin",
		"parameters": {"action": {"type": "Enum[install, status, uninstall, upgrade]"}, "name": {"type": "String[1]"}},
		"implementations": [{"name": "init.rb", "requirements": ["puppet-agent"]},
		{"name": "windows.ps1", "requirements": ["powershell"], "input_method": "powershell"},
		{"name": "linux.sh", "requirements": ["shell"], "input_method": "environment", "files": ["package/files/common.sh", "facts/tasks/bash.sh"]}]}`,
	"package/tasks/init.rb":     "the package in Ruby",
	"package/tasks/windows.ps1": "the package in PowerShell",
	"package/tasks/linux.sh":    "the package in shell",
	"package/files/common.sh":   "what shell tasks share",
	"service/tasks/init.json": `{"input_method": "stdin",
		"parameters": {"action": {"type": "Enum[start, stop, status]"}, "name": {"type": "String[1]"}},
		"implementations": [{"name": "init.rb", "requirements": ["puppet-agent"]},
		{"name": "windows.ps1", "requirements": ["powershell"], "input_method": "powershell"},
		{"name": "linux.sh", "requirements": ["shell"], "input_method": "environment", "files": ["package/files/common.sh"]}]}`,
	"service/tasks/init.rb":     "the service in Ruby",
	"service/tasks/windows.ps1": "the service in PowerShell",
	"service/tasks/linux.sh":    "the service in shell",
	"facts/tasks/init.json": `{"parameters": {}, "files": ["facts/tasks/"], "implementations": [
		{"name": "ruby.rb", "requirements": ["puppet-agent"], "input_method": "stdin"},
		{"name": "powershell.ps1", "requirements": ["powershell"], "input_method": "powershell"},
		{"name": "bash.sh", "requirements": ["shell"], "input_method": "environment"}]}`,
	"facts/tasks/ruby.rb":        "the facts in Ruby",
	"facts/tasks/powershell.ps1": "the facts in PowerShell",
	"facts/tasks/bash.sh":        "the facts in bash",
}

// An order of a task with several implementations is one that pxp-agent 1.15 can carry out, whatever the node has: it finds the
// executable and what is needed beside it by their names. It never did while executables were sent as module/tasks/name.
func TestTasksWithImplementationsFitPxpAgent(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	facts := []string{"facts/tasks/bash.sh", "facts/tasks/init.json", "facts/tasks/powershell.ps1", "facts/tasks/ruby.rb"}
	for _, c := range []struct {
		task     string
		features []string
		run      string
		beside   []string
	}{
		{"package", []string{"puppet-agent", "shell"}, "package/tasks/init.rb", nil},
		{"package", []string{"shell"}, "package/tasks/linux.sh", []string{"facts/tasks/bash.sh", "package/files/common.sh"}},
		{"package", []string{"powershell"}, "package/tasks/windows.ps1", nil},
		{"service", []string{"puppet-agent", "shell"}, "service/tasks/init.rb", nil},
		{"service", []string{"shell"}, "service/tasks/linux.sh", []string{"package/files/common.sh"}},
		{"facts", []string{"puppet-agent", "shell"}, "facts/tasks/ruby.rb", facts},
		{"facts", []string{"shell"}, "facts/tasks/bash.sh", facts},
	} {
		params := ""
		if c.task != "facts" {
			params = `,"params":{"action":"status","name":"x"}`
		}
		status, started, problem := b.order(t, "admin", "/jobs/task", `{"targets":{"nodes":["web-1"]},"task":"`+c.task+`"`+params+`}`)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", c.task, status, problem)
		}
		id, err := strconv.ParseInt(started.Job.ID, 10, 64)
		check(t, err)
		j, err := b.records.Job(t.Context(), id)
		check(t, err)
		run, beside := carriedOut(t, *j.Spec.Task, c.features)
		if run != stockTasks[c.run] {
			t.Errorf("%s with %v runs %q, want %q", c.task, c.features, run, stockTasks[c.run])
		}
		if diff := cmp.Diff(c.beside, beside); diff != "" {
			t.Errorf("%s with %v, files beside (-want +got):\n%s", c.task, c.features, diff)
		}
	}
}

// carriedOut does what pxp-agent does with the names of an order (lib/src/modules/task.cc): the first implementation whose requirements
// the node meets names the executable, and every other file, or directory with a slash at its end, is looked for by its whole name.
func carriedOut(t *testing.T, spec job.TaskSpec, features []string) (content string, beside []string) {
	t.Helper()
	meets := func(i pxp.TaskImplementation) bool {
		return !slices.ContainsFunc(i.Requirements, func(r string) bool { return !slices.Contains(features, r) })
	}
	chosen := spec.Metadata.Implementations[slices.IndexFunc(spec.Metadata.Implementations, meets)]
	content = contentOf(spec.Files, chosen.Name)
	for _, name := range slices.Concat(spec.Metadata.Files, chosen.Files) {
		for _, f := range spec.Files {
			if f.Name == name || strings.HasSuffix(name, "/") && strings.HasPrefix(f.Name, name) {
				beside = append(beside, f.Name)
			}
		}
	}
	slices.Sort(beside)
	return content, beside
}

// contentOf is the content of a file by the name in the order.
func contentOf(files []job.FileRef, name string) string {
	i := slices.IndexFunc(files, func(f job.FileRef) bool { return f.Name == name })
	if i < 0 {
		return "'" + name + "' file requested by implementation not found"
	}
	for path, content := range taskFiles {
		if fleet.DigestOf([]byte(content)) == files[i].Digest && strings.HasSuffix(path, "/"+name) {
			return content
		}
	}
	return "nothing"
}
