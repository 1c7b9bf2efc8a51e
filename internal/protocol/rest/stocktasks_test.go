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
	"facts/tasks/own.json":       `{"implementations": [{"name": "bash.sh", "requirements": ["shell"], "files": ["facts/tasks/bash.sh"]}]}`,
	"facts/tasks/alone.json":     `{"files": ["facts/tasks/alone.sh"]}`,
	"facts/tasks/alone.sh":       "a task that needs itself",
}

// An order of a task with several implementations is one that pxp-agent 1.15 can carry out, whatever the node has: it finds the
// executable and what is needed beside it by their names. It never did while executables were sent as module/tasks/name.
func TestTasksWithImplementationsFitPxpAgent(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	facts := []string{
		"facts/tasks/alone.json", "facts/tasks/alone.sh", "facts/tasks/bash.sh", "facts/tasks/init.json", "facts/tasks/own.json",
		"facts/tasks/powershell.ps1", "facts/tasks/ruby.rb",
	}
	for _, c := range []struct {
		task     string
		features []string
		run      string
		beside   []string
	}{
		{"package", []string{"puppet-agent", "shell"}, "package/tasks/init.rb", nil},
		{"package", []string{"shell"}, "package/tasks/linux.sh", []string{"facts/tasks/bash.sh", "package/files/common.sh", "package/tasks/linux.sh"}},
		{"package", []string{"powershell"}, "package/tasks/windows.ps1", nil},
		{"service", []string{"puppet-agent", "shell"}, "service/tasks/init.rb", nil},
		{"service", []string{"shell"}, "service/tasks/linux.sh", []string{"package/files/common.sh", "service/tasks/linux.sh"}},
		{"facts", []string{"puppet-agent", "shell"}, "facts/tasks/ruby.rb", facts},
		{"facts", []string{"shell"}, "facts/tasks/bash.sh", facts},
		{"facts::own", []string{"shell"}, "facts/tasks/bash.sh", []string{"bash.sh", "facts/tasks/bash.sh"}},
		{"facts::alone", []string{"shell"}, "facts/tasks/alone.sh", []string{"alone.sh", "facts/tasks/alone.sh"}},
	} {
		params := ""
		if !strings.HasPrefix(c.task, "facts") {
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

// carriedOut does what pxp-agent 1.15.25 does with the names of an order (lib/src/modules/task.cc): the first implementation whose requirements
// the node meets names the executable. Every other file, or directory with a slash at its end, is looked for by its whole name and put
// beside; if there is one, the executable comes as module/tasks/name to them, and must not be there yet.
func carriedOut(t *testing.T, spec job.TaskSpec, features []string) (content string, beside []string) {
	t.Helper()
	chosen := pxp.TaskImplementation{Name: spec.Files[0].Name}
	if all := spec.Metadata.Implementations; all != nil {
		chosen = all[slices.IndexFunc(all, func(i pxp.TaskImplementation) bool {
			return !slices.ContainsFunc(i.Requirements, func(r string) bool { return !slices.Contains(features, r) })
		})]
	}
	content = contentOf(spec.Files, chosen.Name)
	for _, name := range slices.Concat(spec.Metadata.Files, chosen.Files) {
		for _, f := range spec.Files {
			if f.Name == name || strings.HasSuffix(name, "/") && strings.HasPrefix(f.Name, name) {
				beside = append(beside, f.Name)
			}
		}
	}
	module, _, _ := strings.Cut(spec.Name, ":")
	if own := module + "/tasks/" + chosen.Name; slices.Contains(beside, own) {
		t.Errorf("%s: boost::filesystem::copy_file: File exists: %s", spec.Name, own)
	} else if beside != nil {
		beside = append(beside, own)
	}
	slices.Sort(beside)
	return content, slices.Compact(beside)
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
