package orders

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// choice is what of a task is run on this node, and how.
type choice struct {
	file   pxp.FileSource
	method string
	extra  []string // names of files that it needs beside; a directory ends in a slash
}

func taskName(params jsontext.Value) string {
	p, err := pxp.ParseTask(params)
	if err != nil {
		return ""
	}
	return p.Task
}

// task gets a task's files and builds its command line, environment and input. Parameters go to
// standard input and into the environment, never into arguments.
func (n *Node) task(ctx context.Context, o Order) (Command, error) {
	p, err := pxp.ParseTask(o.Params)
	if err != nil {
		return Command{}, err
	}
	chosen, err := choose(p, n.OS)
	if err != nil {
		return Command{}, err
	}
	input := map[string]jsontext.Value{}
	if err := json.Unmarshal(p.Input, &input); err != nil {
		return Command{}, fault.Wrap(fault.Invalid, err, "field input: it is no object with each key once")
	}
	input["_task"] = pxp.Data(p.Task)
	file, installed, err := n.install(ctx, o.Place, p, chosen)
	if err != nil {
		return Command{}, err
	}
	if installed != "" {
		input["_installdir"] = pxp.Data(installed)
	}
	return n.taskCommand(file, chosen.method, input)
}

// choose picks the implementation, its input method and its files.
func choose(p pxp.TaskParams, os string) (choice, error) {
	spec := pxp.TaskMetadata{InputMethod: p.InputMethod, Features: p.Features}
	if p.Metadata != nil {
		spec = *p.Metadata // what is beside it means nothing
	}
	c := choice{file: p.Files[0], method: spec.InputMethod, extra: slices.Clone(spec.Files)}
	if len(spec.Implementations) > 0 {
		impl, err := implementation(spec, os)
		if err != nil {
			return c, err
		}
		i := slices.IndexFunc(p.Files, func(f pxp.FileSource) bool { return f.Filename == impl.Name })
		if i < 0 {
			return c, fault.New(fault.Invalid, "'%s' file requested by implementation not found", impl.Name)
		}
		c.file = p.Files[i]
		c.extra = append(c.extra, impl.Files...)
		if impl.InputMethod != "" {
			c.method = impl.InputMethod
		}
	}
	if c.method == "" {
		c.method = pxp.BothInput
		if strings.EqualFold(path.Ext(c.file.Filename), ".ps1") {
			c.method = pxp.PowerShellInput
		}
	}
	return c, nil
}

// implementation is the first whose requirements this node meets.
func implementation(spec pxp.TaskMetadata, os string) (pxp.TaskImplementation, error) {
	features := append([]string{"puppet-agent", "shell"}, spec.Features...)
	if os == "windows" {
		features[1] = "powershell"
	}
	for _, impl := range spec.Implementations {
		if !slices.ContainsFunc(impl.Requirements, func(r string) bool { return !slices.Contains(features, r) }) {
			return impl, nil
		}
	}
	slices.Sort(features)
	return pxp.TaskImplementation{}, fault.New(fault.Invalid, "no implementations match supported features: %s", strings.Join(slices.Compact(features), ", "))
}

// install gets the executable; with the files that it needs in a directory of
// their own, if there are any.
func (n *Node) install(ctx context.Context, place string, p pxp.TaskParams, c choice) (file, dir string, err error) {
	extra, err := expand(p.Files, c.extra)
	if err != nil {
		return "", "", err
	}
	if len(extra) == 0 {
		file, err = n.Cache.File(ctx, c.file)
		return file, "", err
	}
	module, _, _ := strings.Cut(p.Task, "::")
	if module != path.Base(module) || strings.ContainsAny(module, `\:`) || strings.HasPrefix(module, ".") {
		return "", "", fault.New(fault.Invalid, "field task: %.200q does not begin with a module's name", p.Task)
	}
	own := path.Join(module, "tasks", BaseName(c.file))
	extra[own] = c.file
	dir = filepath.Join(place, "temp_task_"+uuid.NewString())
	if err := n.Cache.Install(ctx, dir, extra); err != nil {
		return "", "", err
	}
	return filepath.Join(dir, filepath.FromSlash(own)), dir, nil
}

// expand finds the files with the names; one that ends in a slash is all files below it.
func expand(files []pxp.FileSource, names []string) (map[string]pxp.FileSource, error) {
	found := map[string]pxp.FileSource{}
	for _, name := range names {
		there := false
		for _, f := range files {
			if f.Filename == name || strings.HasSuffix(name, "/") && strings.HasPrefix(f.Filename, name) {
				found[f.Filename], there = f, true
			}
		}
		if !there {
			return nil, fault.New(fault.Invalid, "'%s' file requested as additional task dependency not found", name)
		}
	}
	return found, nil
}

// taskCommand is how a task's file is run with its input.
func (n *Node) taskCommand(file, method string, input map[string]jsontext.Value) (Command, error) {
	c := program(n.interpreter(file))
	text, err := json.Marshal(input, json.Deterministic(true))
	if err != nil {
		return c, fault.Wrap(fault.Invalid, err, "field input: it cannot be written as JSON")
	}
	switch method {
	case pxp.StdinInput:
		c.Input = text
	case pxp.EnvironmentInput:
		c.Env, err = taskEnvironment(input)
	case pxp.BothInput:
		c.Input = text
		c.Env, err = taskEnvironment(input)
	case pxp.PowerShellInput:
		c = n.shim(file)
		c.Input = text
	default:
		err = fault.New(fault.Invalid, "unsupported task input method: %s", method)
	}
	return c, err
}

// taskEnvironment is one PT_ variable for each key: texts as they are, everything else as JSON.
func taskEnvironment(input map[string]jsontext.Value) ([]string, error) {
	var env []string
	for key, value := range input {
		text := ""
		if value.Kind() == '"' {
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "field input: %.80q is no text", key)
			}
		} else {
			compact := value.Clone()
			if err := compact.Compact(); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "field input: %.80q is no JSON", key)
			}
			text = string(compact)
		}
		if strings.ContainsAny(key, "=\x00") || strings.ContainsRune(text, 0) {
			return nil, fault.New(fault.Invalid, "field input: %.80q cannot be an environment variable: it holds a byte 0, or its name an =", key)
		}
		env = append(env, "PT_"+key+"="+text)
	}
	slices.Sort(env)
	return env, nil
}
