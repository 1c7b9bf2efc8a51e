package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// paramFlags are how the parameters of a task are given. Those that the task
// declares sensitive are taken from a file, standard input, the environment or a
// prompt only: everybody on a machine sees its command lines.
type paramFlags struct {
	params []string // NAME=VALUE, {JSON}, @FILE or -
	env    []string // NAME, or NAME=VARIABLE
	ask    []string // NAME
}

const paramHelp = `Parameters: NAME=VALUE after the task, or with --params: NAME=VALUE, an object of JSON, a
file of one (@FILE), or standard input (-). A value on the command line is a text, unless the task declares the
parameter as something that no text is: then it is JSON, such as 7, true or ["a", "b"].

Parameters that the task declares sensitive are refused on the command line, where others can see them: give
them in a file, on standard input, from the environment (--env) or at a prompt (--ask).`

func (p *paramFlags) add(f flagSet) {
	f.StringArrayVarP(&p.params, "params", "p", nil, "parameters: NAME=VALUE, an object of JSON, @FILE or - (standard input); may be given many times")
	f.StringArrayVar(&p.env, "env", nil, "take a parameter from the environment: NAME=VARIABLE, or NAME for PT_NAME")
	f.StringArrayVar(&p.ask, "ask", nil, "ask for the parameter NAME at the terminal, without showing it")
}

// taskParams is what was given: texts as typed, and objects of JSON.
type taskParams struct {
	texts  map[string]string
	values map[string]json.RawMessage
	shown  map[string]bool // names given on the command line
}

// secretParams are the parameters that others must not see.
type secretParams struct {
	of    string // the task or action
	names []string
}

// secretsOfTask are those of a task.
func secretsOfTask(t api.Task) secretParams {
	s := secretParams{of: "the task " + t.Name}
	for _, p := range t.Parameters {
		if p.Sensitive {
			s.names = append(s.names, p.Name)
		}
	}
	return s
}

// readParams reads all that was given for a task or action.
func readParams(a *app, words []string, p paramFlags, secret secretParams) (g taskParams, err error) {
	g = taskParams{texts: map[string]string{}, values: map[string]json.RawMessage{}, shown: map[string]bool{}}
	for _, word := range slices.Concat(words, p.params) {
		if err := readParam(a, g, word); err != nil {
			return g, err
		}
	}
	if err := g.sensitive(secret); err != nil {
		return g, err
	}
	for _, word := range p.env {
		name, variable, given := strings.Cut(word, "=")
		if !given {
			variable = "PT_" + name
		}
		value, there := a.system.lookup(variable)
		if !there {
			return g, usageError{fault.New(fault.Invalid, "--env %s: the variable %s is not set", word, variable)}
		}
		if err := g.text(name, value, false); err != nil {
			return g, err
		}
	}
	if len(p.ask) == 0 {
		return g, nil
	}
	secrets, err := a.passwords(false, p.ask...)
	if err != nil {
		return g, err
	}
	for i, name := range p.ask {
		if err := g.text(name, secrets[i], false); err != nil {
			return g, err
		}
	}
	return g, nil
}

// readParam reads one word of the command line.
func readParam(a *app, g taskParams, word string) error {
	file, isFile := strings.CutPrefix(word, "@")
	name, value, isPair := strings.Cut(word, "=")
	switch {
	case word == "-":
		return g.object("standard input", a.system.In, false)
	case isFile:
		from, err := openNamed("the parameters", file)
		if err != nil {
			return err
		}
		defer func() { _ = from.Close() }()
		return g.object(file, from, false)
	case strings.HasPrefix(strings.TrimSpace(word), "{"):
		return g.object("--params", strings.NewReader(word), true)
	case !isPair:
		return usageError{fault.New(fault.Invalid, "%.80q is no parameter: those are NAME=VALUE, an object of JSON, @FILE or -", word)}
	}
	return g.text(name, value, true)
}

func (g taskParams) text(name, value string, shown bool) error {
	if err := g.fresh(name); err != nil {
		return err
	}
	g.texts[name] = value
	g.shown[name] = shown
	return nil
}

// fresh refuses an empty name, and one that was given already.
func (g taskParams) fresh(name string) error {
	_, typed := g.texts[name]
	_, there := g.values[name]
	switch {
	case name == "":
		return usageError{fault.New(fault.Invalid, "a parameter has no name; parameters are NAME=VALUE")}
	case typed || there:
		return usageError{fault.New(fault.Invalid, "the parameter %.80s is given twice", name)}
	}
	return nil
}

// maxParamBytes is the largest object of parameters that is read.
const maxParamBytes = 16 << 20

// object reads an object of JSON.
func (g taskParams) object(what string, from io.Reader, shown bool) error {
	text, err := io.ReadAll(io.LimitReader(from, maxParamBytes+1))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "cannot read the parameters: %v", err)
	}
	if len(text) > maxParamBytes {
		return usageError{fault.New(fault.Invalid, "%s: parameters have at most %d bytes", what, maxParamBytes)}
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil || values == nil {
		return usageError{fault.New(fault.Invalid, "%s must hold one object of JSON, such as {\"name\": \"ntp\"}%s", what, where(err))}
	}
	for name, value := range values {
		if err := g.fresh(name); err != nil {
			return err
		}
		g.values[name] = value
		g.shown[name] = shown
	}
	return nil
}

// where says at which byte JSON is wrong, and nothing of what it holds.
func where(err error) string {
	if wrong, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // json returns it bare
		return fmt.Sprintf(" (it is wrong at byte %d)", wrong.Offset)
	}
	return ""
}

// sensitive refuses secrets on the command line.
func (g taskParams) sensitive(secret secretParams) error {
	var names []string
	for _, name := range secret.names {
		if g.shown[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return usageError{fault.New(fault.Invalid, "%s of %s must not be given on the command line, where others can see it: give it at a prompt (--ask %s), "+
		"from the environment (--env %s=VARIABLE), in a file (--params @FILE) or on standard input (--params -)", strings.Join(names, ", "),
		secret.of, names[0], names[0])}
}

// json is the object of the values.
func (g taskParams) json() (json.RawMessage, error) {
	if len(g.values) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(g.values)
	return bytes.TrimSpace(text), err
}
