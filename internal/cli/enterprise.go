package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// toolsMode is whether a command is spoken as one of Puppet Enterprise's client tools.
type toolsMode struct {
	name   string // the tool, when the program is called by its name: job, task, access, code, app or query; else empty
	config string // --config-file
}

// exitCode is what a tool ends with: 0, or 1 for whatever went wrong.
func (m toolsMode) exitCode(code int) int {
	if m.name == "" {
		return code
	}
	return min(code, 1)
}

// follows says whether a job is shown in a tool's layout, in which nothing else is said.
func (m toolsMode) follows() bool { return m.name == "job" || m.name == "task" }

// toolPrefix begins the names by which a tool is called: puppet-job.
const toolPrefix = "puppet-"

// becomes is what is made of a flag of theirs.
type becomes int

const (
	same    becomes = iota // it is one of ours, of the same meaning
	renamed                // ours has another name
	read                   // it says where configuration is
	unused                 // it is taken and means nothing here
	refused                // it is refused, with words
	worked                 // its value is worked on
)

// theirFlag is a flag of a client tool.
type theirFlag struct {
	names   []string // as they are typed
	value   bool     // it takes one
	becomes becomes
	ours    string                // the flag here
	work    func(string) []string // of worked: makes the words here
	says    string                // for the page: what happens, or why not
	linked  bool                  // under the name of the tool only: here the letter means something else
}

// connection are the flags that most tools have.
var connection = []theirFlag{
	{names: []string{"--service-url"}, value: true, becomes: worked, ours: "--server", work: serverWords, says: "the server, without the path"},
	{names: []string{"--cacert", "--ca-cert"}, value: true, becomes: renamed, ours: "--ca-file"},
	{names: []string{"--token-file"}, value: true, becomes: same},
	{names: []string{"--config-file"}, value: true, becomes: read, says: "this file is read, and no other"},
	{names: []string{"--color"}, becomes: worked, ours: "--color=always", work: words("--color=always")},
	{names: []string{"--no-color"}, becomes: worked, ours: "--color=never", work: words("--color=never")},
	{names: []string{"--verbose"}, becomes: unused, says: "all is said that there is to say; -o json has the rest"},
	{names: []string{"--help", "-h"}, becomes: same},
	{names: []string{"--version"}, becomes: renamed, ours: "tutti version", linked: true},
}

var format = theirFlag{names: []string{"--format"}, value: true, becomes: worked, ours: "-o", work: formatWords, says: "human is table"}

// ofNodes are the flags by which nodes are chosen.
var ofNodes = []theirFlag{
	{names: []string{"--nodes", "-n"}, value: true, becomes: same},
	{names: []string{"--query"}, value: true, becomes: same},
	{names: []string{"-q"}, value: true, becomes: renamed, ours: "--query", linked: true, says: "-q of tutti is --quiet; write --query there"},
	{names: []string{"--node-group"}, value: true, becomes: renamed, ours: "--group", says: "names do as well as ids"},
	{names: []string{"--environment", "-e"}, value: true, becomes: same},
	{names: []string{"--description"}, value: true, becomes: same},
	{names: []string{"--noop"}, becomes: same},
	{names: []string{"--concurrency"}, value: true, becomes: same},
	{names: []string{"--no-wait"}, becomes: same},
	format,
}

// theirs are the flags of each tool and action that the tools are documented to have.
var theirs = map[string][]theirFlag{
	"job run": slices.Concat(ofNodes, []theirFlag{
		{names: []string{"--application", "-a"}, value: true, becomes: worked, ours: "--app", work: appWords, says: "App['eu'] is App[eu]"},
		{names: []string{"--env"}, value: true, becomes: renamed, ours: "--environment"},
		{names: []string{
			"--no-enforce-environment",
		}, becomes: worked, work: words(), says: "each node uses its own environment, as without --environment, which is left out"},
		{names: []string{"--no-noop"}, becomes: same},
		{names: []string{"--tags"}, value: true, becomes: same},
		{names: []string{"--skip-tags"}, value: true, becomes: same},
		{names: []string{"--debug"}, becomes: same},
		{names: []string{"--trace"}, becomes: same},
		{names: []string{"--evaltrace"}, becomes: same},
	}, connection),
	"job show": slices.Concat([]theirFlag{format}, connection),
	"job list": slices.Concat([]theirFlag{format}, connection),
	"job stop": slices.Concat([]theirFlag{{names: []string{"--force"}, becomes: renamed, ours: "--kill"}, format}, connection),
	"job plan": slices.Concat(ofNodes[:5], []theirFlag{
		{names: []string{"--application", "-a"}, value: true, becomes: worked, ours: "--app", work: appWords, says: "App['eu'] is App[eu]"},
		{names: []string{"--concurrency"}, value: true, becomes: unused, says: "the order is the same, however many run at a time"},
		format,
	}, connection),
	"task run": slices.Concat(ofNodes, []theirFlag{
		{names: []string{"--params"}, value: true, becomes: same},
	}, connection),
	"task show": slices.Concat([]theirFlag{
		{names: []string{"--all"}, becomes: same},
		{names: []string{"--environment", "-e"}, value: true, becomes: same},
		format,
	}, connection),
	"access login": {
		{names: []string{
			"--lifetime",
		}, value: true, becomes: worked, ours: "--lifetime", work: lifetimeWords, says: "y and d, too; a bare number is seconds; with 0 the server says how long"},
		{names: []string{"--print"}, becomes: same},
		{names: []string{"--label"}, value: true, becomes: same},
		{names: []string{"--username", "-u"}, value: true, becomes: worked, ours: "the argument NAME", work: func(name string) []string { return []string{name} }},
		{names: []string{"--token-file", "-t"}, value: true, becomes: renamed, ours: "--token-file"},
		{names: []string{"--ca-cert", "--cacert"}, value: true, becomes: renamed, ours: "--ca-file"},
		{names: []string{"--service-url"}, value: true, becomes: worked, ours: "--server", work: serverWords, says: "the server, without the path"},
		{names: []string{"--config-file", "-c"}, value: true, becomes: read, says: "this file is read, and no other"},
		{names: []string{"--debug"}, becomes: unused, says: "a password or a token is never printed with it"},
		{names: []string{"--help", "-h"}, becomes: same},
	},
	"access show":              accessFile,
	"access delete-token-file": accessFile,
	"code deploy": slices.Concat(codeFlagsOfTheirs, []theirFlag{
		{names: []string{"--wait", "-w"}, becomes: same},
		{names: []string{"--all"}, becomes: same},
		{names: []string{"--dry-run"}, becomes: same},
		{names: []string{"--format", "-F"}, value: true, becomes: worked, ours: "-o", work: formatWords, says: "human is table"},
	}),
	"code status": codeFlagsOfTheirs,
	"app show": slices.Concat([]theirFlag{
		{names: []string{"--environment", "-e"}, value: true, becomes: same}, format,
	}, connection),
	"query": {
		{names: []string{"--urls", "-u"}, value: true, becomes: worked, ours: "--server", work: firstServerWords, says: "the first one"},
		{names: []string{"--cacert"}, value: true, becomes: renamed, ours: "--ca-file"},
		{names: []string{
			"--cert",
		}, value: true, becomes: refused, says: "log in, and a token is shown: tutti access login; or write to the server with curl, which shows a certificate"},
		{names: []string{
			"--key",
		}, value: true, becomes: refused, says: "log in, and a token is shown: tutti access login; or write to the server with curl, which shows a certificate"},
		{names: []string{"--token"}, value: true, becomes: renamed, ours: "--token-file"},
		{names: []string{"--config", "-c"}, value: true, becomes: read, says: "this file is read, and no other"},
		{names: []string{"--log-level", "-l"}, value: true, becomes: unused, says: "what is wrong is always said"},
		{names: []string{"--help", "-h"}, becomes: same},
	},
}

var accessFile = []theirFlag{
	{names: []string{"--token-file", "-t", "--token-path"}, value: true, becomes: renamed, ours: "--token-file"},
	{names: []string{"--config-file", "-c"}, value: true, becomes: read, says: "this file is read, and no other"},
	{names: []string{"--debug"}, becomes: unused, says: "nothing more is printed"},
	{names: []string{"--help", "-h"}, becomes: same},
}

var codeFlagsOfTheirs = []theirFlag{
	{names: []string{"--log-level", "-l"}, value: true, becomes: unused, says: "what is wrong is always said"},
	{names: []string{"--config-file", "-c"}, value: true, becomes: read, says: "this file is read, and no other"},
	{names: []string{"--cacert"}, value: true, becomes: renamed, ours: "--ca-file"},
	{names: []string{"--token-file", "-t"}, value: true, becomes: renamed, ours: "--token-file"},
	{names: []string{"--service-url"}, value: true, becomes: worked, ours: "--server", work: serverWords, says: "the server, without the path"},
	{names: []string{"--help", "-h"}, becomes: same},
}

func words(all ...string) func(string) []string { return func(string) []string { return all } }

// serverWords name a server by its service-url; what is none is left for the flag itself to refuse.
func serverWords(service string) []string {
	server, err := serverOf(service)
	if err != nil {
		server = service
	}
	return []string{"--server=" + server}
}

func firstServerWords(urls string) []string {
	one, _, _ := strings.Cut(urls, ",")
	return serverWords(one)
}

func formatWords(name string) []string {
	if name == "human" {
		name = "table"
	}
	return []string{"--output=" + name}
}

func appWords(name string) []string {
	return []string{"--app=" + strings.NewReplacer("['", "[", "']", "]", `["`, "[", `"]`, "]").Replace(name)}
}

// lifetimeWords are a lifetime as tutti login takes it.
func lifetimeWords(text string) []string {
	switch {
	case text != "" && strings.Trim(text, "0") == "":
		return nil
	case text != "" && strings.Trim(text, "0123456789") == "":
		text += "s"
	case strings.HasSuffix(text, "y"):
		if n := strings.TrimSuffix(text, "y"); strings.Trim(n, "0123456789") == "" && n != "" && len(n) < 5 {
			years := 0
			_, _ = fmt.Sscan(n, &years)
			text = fmt.Sprintf("%dd", 365*years)
		}
	}
	return []string{"--lifetime=" + text}
}

// fromEnterprise makes of a command line of Puppet Enterprise's client tools one of ours: under their names all of it, and here those
// of their flags that mean nothing else.
func (a *app) fromEnterprise(args []string) ([]string, error) {
	tool, called := strings.CutPrefix(a.system.Name, toolPrefix)
	if _, known := toolsFile[tool]; called && known {
		a.tools.name = tool
		if slices.Contains(args, "--version") || len(args) == 1 && slices.Contains([]string{"-V", "-v"}, args[0]) {
			return []string{"version"}, nil
		}
		args = slices.Concat([]string{tool}, args)
	}
	if len(args) == 0 {
		return args, nil
	}
	tool = args[0]
	action, at := actionIn(tool, args)
	flags, known := theirs[action]
	if !known {
		return args, nil
	}
	line, free, err := a.tools.translated(action, flags, args, at)
	if err != nil {
		return nil, err
	}
	return a.asTools(action, line, free)
}

// actionIn finds the action of a command line, which may have flags before it, and where its word is.
func actionIn(tool string, args []string) (action string, at int) {
	if tool == "query" {
		return tool, 0
	}
	for i := 1; i < len(args); i++ {
		switch {
		case !strings.HasPrefix(args[i], "-"):
			return tool + " " + args[i], i
		case !strings.Contains(args[i], "=") && takesValue(tool, args[i]):
			i++
		}
	}
	return "", 0
}

// takesValue says whether a flag of any action of a tool takes a value.
func takesValue(tool, name string) bool {
	for action, flags := range theirs {
		if strings.HasPrefix(action, tool) && slices.ContainsFunc(flags, func(f theirFlag) bool { return f.value && slices.Contains(f.names, name) }) {
			return true
		}
	}
	return false
}

// translated is a command line with its flags in our words. The words of the command come first: cobra finds it by them. free says that the
// line wants no environment to hold for all nodes.
func (m *toolsMode) translated(action string, flags []theirFlag, args []string, at int) (out []string, free bool, err error) {
	out = strings.Fields(action)
	for i := 1; i < len(args); i++ {
		if i == at {
			continue
		}
		if args[i] == "--" {
			out = append(out, args[i:]...)
			break
		}
		name, value, given := apart(args[i])
		n := slices.IndexFunc(flags, func(f theirFlag) bool { return slices.Contains(f.names, name) && (!f.linked || m.name != "") })
		if n < 0 {
			out = append(out, args[i])
			continue
		}
		f := flags[n]
		if !f.value && given { // --color=never is ours
			out = append(out, args[i])
			continue
		}
		if name == "--color" && i+1 < len(args) && slices.Contains([]string{"auto", "always", "never"}, args[i+1]) { // it is ours
			out = append(out, args[i], args[i+1])
			i++
			continue
		}
		if f.value && !given {
			if i++; i >= len(args) {
				return nil, false, usageError{fault.New(fault.Invalid, "%s needs a value; see `tutti %s --help`", name, action)}
			}
			value = args[i]
		}
		words, err := m.inOurs(f, name, value)
		if err != nil {
			return nil, false, err
		}
		free = free || name == "--no-enforce-environment"
		out = append(out, words...)
	}
	if free {
		out = slices.DeleteFunc(out, func(word string) bool { return strings.HasPrefix(word, "--environment=") })
	}
	return out, free, nil
}

// apart takes a flag apart: --name=value, -nvalue.
func apart(word string) (name, value string, given bool) {
	switch {
	case strings.HasPrefix(word, "--"):
		name, value, given = strings.Cut(word, "=")
		return name, value, given
	case strings.HasPrefix(word, "-") && len(word) > 2:
		return word[:2], strings.TrimPrefix(word[2:], "="), true
	}
	return word, "", false
}

// longNames are the names of letters that are the same here.
var longNames = map[string]string{"-n": "--nodes", "-e": "--environment", "-h": "--help", "-w": "--wait"}

// inOurs is one flag in our words.
func (m *toolsMode) inOurs(f theirFlag, name, value string) ([]string, error) {
	switch f.becomes {
	case unused:
		return nil, nil
	case refused:
		return nil, usageError{fault.New(fault.Invalid, "%s means nothing here: %s", name, f.says)}
	case read:
		m.config = value
		return nil, nil
	case worked:
		return f.work(value), nil
	case same, renamed:
	}
	ours := cmp.Or(f.ours, longNames[name], name)
	if f.value {
		ours += "=" + value
	}
	return []string{ours}, nil
}

// asTools adds what a tool does by itself, and what its configuration says, to a command line under its name.
func (a *app) asTools(action string, line []string, free bool) ([]string, error) {
	if a.tools.name == "" {
		return line, nil
	}
	tools, err := a.readTools(a.tools.name)
	if err != nil {
		return nil, err
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(line, func(word string) bool {
			name, _, _ := strings.Cut(word, "=")
			return slices.Contains(names, name)
		})
	}
	runs := action == "job run" || action == "task run"
	var more []string
	if tools.Color != nil && !has("--color") {
		more = append(more, map[bool]string{true: "--color=always", false: "--color=never"}[*tools.Color])
	}
	if runs && tools.Environment != "" && !has("--environment") && !free {
		more = append(more, "--environment="+tools.Environment)
	}
	if runs && tools.Noop != nil && *tools.Noop && !has("--noop", "--no-noop") {
		more = append(more, "--noop")
	}
	if runs { // they do not ask
		more = append(more, "--yes")
	}
	if action == "query" && !has("--output", "-o") {
		more = append(more, "--output=json")
	}
	return slices.Insert(line, len(strings.Fields(action)), more...), nil // not at the end: behind a -- they would be no flags
}
