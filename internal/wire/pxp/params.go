package pxp

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// The bounds of parameters.
const (
	MaxCommandBytes  = 1 << 20
	MaxArguments     = 10_000
	MaxArgumentBytes = 1 << 20 // of one argument, flag or path
)

// The input methods of tasks.
const (
	StdinInput       = "stdin"
	EnvironmentInput = "environment"
	BothInput        = "both"
	PowerShellInput  = "powershell"
)

// The kinds of file entries.
const (
	RegularFile = "file"
	Directory   = "directory"
	Symlink     = "symlink"
)

// ParseCommand reads the parameters of command run.
func ParseCommand(params jsontext.Value) (CommandParams, error) {
	var wire struct {
		Command *string `json:"command"`
	}
	if err := parse(params, &wire); err != nil {
		return CommandParams{}, err
	}
	if wire.Command == nil || *wire.Command == "" {
		return CommandParams{}, missing("command", "a text with the command")
	}
	return CommandParams{Command: *wire.Command}, bounded("command", *wire.Command, MaxCommandBytes)
}

// ParseTask reads the parameters of task run.
func ParseTask(params jsontext.Value) (TaskParams, error) {
	var p TaskParams
	if err := parse(params, &p); err != nil {
		return p, err
	}
	switch {
	case p.Task == "":
		return p, missing("task", "the name of the task")
	case len(p.Files) == 0:
		return p, missing("files", "a list with the task's executables")
	case len(p.Files) > MaxFiles:
		return p, fault.New(fault.Invalid, "field files: it has %d elements, at most %d are allowed", len(p.Files), MaxFiles)
	case p.Input.Kind() != '{':
		return p, fault.New(fault.Invalid, "field input: it must be an object with the task's parameters")
	}
	if err := bounded("task", p.Task, MaxNameBytes); err != nil {
		return p, err
	}
	for _, f := range p.Files {
		if err := f.check("files"); err != nil {
			return p, err
		}
	}
	return p, nil
}

// ParseScript reads the parameters of script run.
func ParseScript(params jsontext.Value) (ScriptParams, error) {
	var p ScriptParams
	if err := parse(params, &p); err != nil {
		return p, err
	}
	if p.Arguments == nil {
		return p, missing("arguments", "a list of texts; it may be empty")
	}
	if err := p.Script.check("script"); err != nil {
		return p, err
	}
	return p, texts("arguments", p.Arguments)
}

// ParseFiles reads the parameters of file download.
func ParseFiles(params jsontext.Value) (FileParams, error) {
	var p FileParams
	if err := parse(params, &p); err != nil {
		return p, err
	}
	if len(p.Files) > MaxFiles {
		return p, fault.New(fault.Invalid, "field files: it has %d elements, at most %d are allowed", len(p.Files), MaxFiles)
	}
	for _, entry := range p.Files {
		if err := entry.check(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// ParsePuppet reads the parameters of pxp-module-puppet run. Which flags may be
// given is the module's own business.
func ParsePuppet(params jsontext.Value) (PuppetParams, error) {
	var p PuppetParams
	if err := parse(params, &p); err != nil {
		return p, err
	}
	if p.Flags == nil {
		return p, missing("flags", "a list of texts; it may be empty")
	}
	if err := bounded("job", p.Job, MaxNameBytes); err != nil {
		return p, err
	}
	return p, texts("flags", p.Flags)
}

// ParseEcho reads the parameter of echo.
func ParseEcho(params jsontext.Value) (EchoParams, error) {
	var wire struct {
		Argument *string `json:"argument"`
	}
	if err := parse(params, &wire); err != nil {
		return EchoParams{}, err
	}
	if wire.Argument == nil {
		return EchoParams{}, missing("argument", "a text")
	}
	return EchoParams{Argument: *wire.Argument}, nil
}

// ParsePing reads the parameters of ping; there may be none.
func ParsePing(params jsontext.Value) (PingParams, error) {
	var p PingParams
	return p, parse(params, &p)
}

// ParseStatus reads the parameters of status query. The transaction may be any
// text: one that cannot be is unknown.
func ParseStatus(params jsontext.Value) (StatusParams, error) {
	var wire struct {
		Transaction *string `json:"transaction_id"`
	}
	if err := parse(params, &wire); err != nil {
		return StatusParams{}, err
	}
	if wire.Transaction == nil {
		return StatusParams{}, missing("transaction_id", "the transaction that is asked about")
	}
	return StatusParams{Transaction: *wire.Transaction}, nil
}

// ParseCancel reads the parameters of transaction cancel.
func ParseCancel(params jsontext.Value) (CancelParams, error) {
	var p CancelParams
	if err := parse(params, &p); err != nil {
		return p, err
	}
	if err := bounded("reason", p.Reason, MaxNameBytes); err != nil {
		return p, err
	}
	return p, CheckTransaction(p.Transaction)
}

var sha256Form = regexp.MustCompile(`\A[0-9a-f]{64}\z`)

// check holds a file to what an agent can keep: it uses the name as a path.
func (f FileSource) check(field string) error {
	if !localName(f.Filename) {
		return fault.New(fault.Invalid, "field %s: filename: %.200q is not a path of plain names below a module", field, f.Filename)
	}
	return checkContent(field, f.SHA256, f.URI)
}

func (e FileEntry) check() error {
	if e.Destination == "" {
		return missing("files: destination", "an absolute path")
	}
	for field, text := range map[string]string{"files: destination": e.Destination, "files: link_source": e.LinkSource} {
		if err := bounded(field, text, MaxArgumentBytes); err != nil {
			return err
		}
	}
	switch e.Kind {
	case RegularFile:
		return checkContent("files", e.SHA256, e.URI)
	case Symlink:
		if e.LinkSource == "" {
			return missing("files: link_source", "what the symlink points to")
		}
		return nil
	case Directory:
		return nil
	default:
		return fault.New(fault.Invalid, "field files: kind: %.80q is none of file, directory and symlink", e.Kind)
	}
}

func checkContent(field, sha256 string, uri Source) error {
	if !sha256Form.MatchString(sha256) {
		return fault.New(fault.Invalid, "field %s: sha256: it must be 64 hexadecimal digits in lower case", field)
	}
	if !strings.HasPrefix(uri.Path, "/") {
		return fault.New(fault.Invalid, "field %s: uri: path: it must begin with a slash", field)
	}
	return bounded(field+": uri: path", uri.Path, MaxArgumentBytes)
}

// localName tells that a name is a path below a directory on every system.
func localName(name string) bool {
	if name == "" || len(name) > MaxArgumentBytes || strings.ContainsAny(name, "\\:\x00") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

func texts(field string, list []string) error {
	if len(list) > MaxArguments {
		return fault.New(fault.Invalid, "field %s: it has %d elements, at most %d are allowed", field, len(list), MaxArguments)
	}
	for _, text := range list {
		if err := bounded(field, text, MaxArgumentBytes); err != nil {
			return err
		}
	}
	return nil
}

// bounded refuses what no system passes to a program.
func bounded(field, text string, most int) error {
	if len(text) > most {
		return fault.New(fault.Invalid, "field %s: it has %d bytes, at most %d are allowed", field, len(text), most)
	}
	if strings.ContainsRune(text, 0) {
		return fault.New(fault.Invalid, "field %s: it holds a byte 0", field)
	}
	return nil
}

func missing(field, shape string) error {
	return fault.New(fault.Invalid, "field %s: it is missing; it is %s", field, shape)
}
