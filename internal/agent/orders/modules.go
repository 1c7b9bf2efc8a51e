package orders

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Node is what the modules of a node stand on.
type Node struct {
	OS         string   // as runtime.GOOS names it
	Shell      []string // runs the text of a command, which is added to it; a login shell and "-c"
	Ruby       string   // for tasks on Windows; empty: "ruby", by the PATH
	Puppet     string   // puppet's executable; empty: "puppet", by the PATH
	PowerShell string   // empty: powershell.exe on Windows, pwsh elsewhere
	PuppetRun  []string // a program that does a Puppet run: see package puppetrun
	Plugins    string   // see pxp.PuppetConfiguration; so are the next
	Settings   string
	Reports    string
	Events     string
	Cache      Cache
	// Shebang is how a file is run whose first line the system cannot follow; nil, or empty: as it is.
	Shebang func(file string) []string
	// Catalog is what a run applies that asks for the cached catalog; nil: what puppet has.
	Catalog func() *pxp.PuppetCatalog
	// Released is what any other run applies: what was released to this node, as its server says now; nil: what puppet is given.
	Released func(ctx context.Context) *pxp.PuppetCatalog
}

func (n *Node) fill() {
	powershell := "pwsh"
	if n.OS == "windows" {
		powershell = "powershell.exe"
	}
	for value, usual := range map[*string]string{&n.Ruby: "ruby", &n.Puppet: "puppet", &n.PowerShell: powershell} {
		if *value == "" {
			*value = usual
		}
	}
	if len(n.Shell) == 0 {
		n.Shell = []string{"/bin/sh", "-c"}
		if n.OS == "windows" {
			n.Shell = append([]string{n.PowerShell}, append(powershellFlags(), "-Command")...)
		}
	}
}

// Modules are the modules that every node has, beside those that need only the engine.
func Modules(n Node) []Module {
	n.fill()
	return []Module{
		{Name: pxp.Command, Actions: map[string]Action{pxp.Run: {Check: checked(pxp.ParseCommand), Prepare: n.command}}},
		{Name: pxp.Script, Actions: map[string]Action{pxp.Run: {Check: checked(pxp.ParseScript), Prepare: n.script}}},
		{Name: pxp.Task, Actions: map[string]Action{pxp.Run: {Check: checked(pxp.ParseTask), Subject: taskName, Prepare: n.task}}},
		{Name: pxp.File, Actions: map[string]Action{pxp.Download: {Check: checked(pxp.ParseFiles), Do: n.files}}},
		{Name: pxp.Puppet, Actions: map[string]Action{pxp.Run: {Lane: PuppetRun, Check: checked(pxp.ParsePuppet), Prepare: n.puppet, Results: Results}}},
	}
}

func (n *Node) command(_ context.Context, o Order) (Command, error) {
	p, err := pxp.ParseCommand(o.Params)
	if err != nil {
		return Command{}, err
	}
	return program(n.Shell, p.Command), nil
}

func (n *Node) script(ctx context.Context, o Order) (Command, error) {
	p, err := pxp.ParseScript(o.Params)
	if err != nil {
		return Command{}, err
	}
	file, err := n.Cache.File(ctx, p.Script)
	if err != nil {
		return Command{}, err
	}
	return program(n.interpreter(file), p.Arguments...), nil
}

// files makes files inside the agent: the first that cannot be made ends it, what was made stays.
func (n *Node) files(ctx context.Context, o Order) (Output, error) {
	p, err := pxp.ParseFiles(o.Params)
	if err != nil {
		return Output{}, err
	}
	for _, entry := range p.Files {
		if err := n.Cache.Make(ctx, entry); err != nil {
			return Output{}, err
		}
	}
	exit := 0
	return Output{Exit: &exit, Stdout: []byte("downloaded")}, nil
}

// PreparePuppet is how a node prepares a Puppet run, for modules that order one in other words: its parameters are a pxp.PuppetParams.
func PreparePuppet(n Node) func(context.Context, Order) (Command, error) {
	n.fill()
	return n.puppet
}

// puppet hands the parameters to the program that does Puppet runs.
func (n *Node) puppet(ctx context.Context, o Order) (Command, error) {
	if len(n.PuppetRun) == 0 {
		return Command{}, fault.New(fault.Unavailable, "this agent does no Puppet runs")
	}
	c := program(n.PuppetRun)
	configuration := pxp.PuppetConfiguration{
		Puppet: n.Puppet, Plugins: n.Plugins, Settings: n.Settings, Reports: n.Reports,
		Events: n.Events, Transaction: o.Transaction,
	}
	if p, err := pxp.ParsePuppet(o.Params); err == nil {
		configuration.Catalog = n.catalog(ctx, p.Flags)
	}
	c.Input = pxp.Data(pxp.PuppetOrder{Input: o.Params, Configuration: configuration})
	return c, nil
}

// catalog is what a run with these flags applies, by its digest; nil: what puppet has, or is given.
func (n *Node) catalog(ctx context.Context, flags []string) *pxp.PuppetCatalog {
	switch {
	case slices.Contains(flags, UseCachedCatalog):
		if n.Catalog != nil {
			return n.Catalog()
		}
	case n.Released != nil && !slices.Contains(flags, "--environment"):
		return n.Released(ctx)
	}
	return nil
}

// UseCachedCatalog is the flag of a Puppet run that applies the catalog which the node has.
const UseCachedCatalog = "--use_cached_catalog"

// Catalog is the module by which a server tells of another catalog. told must not wait.
func Catalog(told func(pxp.CatalogChange)) Module {
	return Module{Name: pxp.Catalog, Actions: map[string]Action{pxp.Changed: {
		Check: checked(pxp.ParseCatalogChange),
		Answer: func(o Order) (jsontext.Value, error) {
			change, err := pxp.ParseCatalogChange(o.Params)
			if err != nil {
				return nil, err
			}
			told(change)
			return jsontext.Value("{}"), nil
		},
	}}}
}

// program is a command line as a command.
func program(line []string, more ...string) Command {
	args := append([]string{}, line[1:]...)
	return Command{Path: line[0], Args: append(args, more...)}
}

// interpreter is the command line that runs a file: the file itself, where the system
// knows what to do with it.
func (n *Node) interpreter(file string) []string {
	if n.OS != "windows" {
		return n.unix(file)
	}
	switch strings.ToLower(path.Ext(file)) {
	case ".rb":
		return []string{n.Ruby, file}
	case ".pp":
		return []string{n.Puppet, "apply", file}
	case ".ps1":
		return append(append([]string{n.PowerShell}, powershellFlags()...), "-File", file)
	default:
		return []string{file}
	}
}

func (n *Node) unix(file string) []string {
	if n.Shebang != nil {
		if line := n.Shebang(file); len(line) > 0 {
			return append(line, file)
		}
	}
	return []string{file}
}

// BaseName is the last part of a file's name: what it is called in the cache.
func BaseName(f pxp.FileSource) string { return path.Base(f.Filename) }

// Results are the results of actions whose program prints them as one JSON value. No
// output is null.
func Results(o Output) (jsontext.Value, error) {
	text := bytes.TrimSpace(o.Stdout)
	if len(text) == 0 {
		return nothing, nil
	}
	value := jsontext.Value(text)
	if !value.IsValid() {
		return nil, errors.New("returned invalid JSON on stdout - stderr: " + ErrorText(o))
	}
	return value, nil
}

// ErrorText is standard error as the original puts it into its messages.
func ErrorText(o Output) string {
	if len(o.Stderr) == 0 {
		return "(empty)"
	}
	return "\n" + readable(o.Stderr)
}
