package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// FilesPath is where nodes fetch the files of jobs: a digest and a file name follow.
const FilesPath = "/job-files/v1/"

// order is what is the same in the requests of all runs of a job.
type order struct {
	module, action string
	params         jsontext.Value
}

// request is the order for one run.
func (o order) request(r Run) pxp.Request {
	return pxp.Request{Transaction: r.ID, Module: o.module, Action: o.action, Params: o.params, NotifyOutcome: true}
}

// orderOf makes the order from a job as it was given, with what is secret in it.
func orderOf(j Job, secret json.RawMessage) (order, error) {
	switch s := j.Spec; s.Kind {
	case Puppet:
		return order{pxp.Puppet, pxp.Run, pxp.Data(pxp.PuppetParams{Env: []string{}, Flags: s.flags(), Job: fmt.Sprint(j.ID)})}, nil
	case Task:
		params, err := s.Task.params(secret)
		return order{pxp.Task, pxp.Run, params}, err
	case Command:
		return order{pxp.Command, pxp.Run, pxp.Data(pxp.CommandParams{Command: s.Command.Command})}, nil
	case Script:
		arguments := s.Script.Arguments
		if arguments == nil {
			arguments = []string{}
		}
		script := s.Script.Script
		return order{pxp.Script, pxp.Run, pxp.Data(pxp.ScriptParams{Script: script.source(path.Base(script.Name)), Arguments: arguments})}, nil
	case File:
		return order{pxp.File, pxp.Download, pxp.Data(s.File.params())}, nil
	case Action:
		input := jsontext.Value(s.Action.Input)
		if len(input) == 0 {
			input = jsontext.Value("{}")
		}
		return order{s.Action.Module, s.Action.Action, input}, nil
	}
	return order{}, fmt.Errorf("job %d is of the kind %q", j.ID, j.Spec.Kind)
}

// flags are those of puppet agent. Whoever orders a run means now: no splay.
func (s Spec) flags() []string {
	p := s.Puppet
	flags := []string{"--no-splay"}
	for flag, on := range map[string]bool{
		"--noop": p.Noop, "--no-noop": p.NoNoop, "--debug": p.Debug, "--trace": p.Trace, "--evaltrace": p.Evaltrace,
		"--show_diff": p.ShowDiff, "--use_cached_catalog": p.UseCachedCatalog,
		"--no-use_cached_catalog": p.NoCachedCatalog,
		"--usecacheonfailure":     p.UseCacheOnFailure != nil && *p.UseCacheOnFailure,
		"--no-usecacheonfailure":  p.UseCacheOnFailure != nil && !*p.UseCacheOnFailure,
	} {
		if on {
			flags = append(flags, flag)
		}
	}
	if s.Environment != "" {
		flags = append(flags, "--environment", string(s.Environment))
	}
	if p.Ordering != "" {
		flags = append(flags, "--ordering", p.Ordering)
	}
	for flag, seconds := range p.times() {
		if seconds != nil {
			flags = append(flags, flag, strconv.Itoa(*seconds))
		}
	}
	if len(p.Tags) > 0 {
		flags = append(flags, "--tags", strings.Join(p.Tags, ","))
	}
	if len(p.SkipTags) > 0 {
		flags = append(flags, "--skip_tags", strings.Join(p.SkipTags, ","))
	}
	return flags
}

// times is the flags whose values are seconds.
func (p PuppetSpec) times() map[string]*int {
	return map[string]*int{
		"--filetimeout": p.FileTimeout, "--http_connect_timeout": p.HTTPConnectTimeout,
		"--http_keepalive_timeout": p.HTTPKeepaliveTimeout, "--http_read_timeout": p.HTTPReadTimeout,
	}
}

// params joins what may be shown with what is secret.
func (t TaskSpec) params(secret json.RawMessage) (jsontext.Value, error) {
	input := map[string]json.RawMessage{}
	for _, part := range []json.RawMessage{t.Parameters, secret} {
		var object map[string]json.RawMessage
		if len(part) == 0 {
			continue
		}
		if err := json.Unmarshal(part, &object); err != nil {
			return nil, err
		}
		maps.Copy(input, object)
	}
	if t.Noop {
		input["_noop"] = json.RawMessage("true")
	}
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	params := pxp.TaskParams{Task: t.Name, Input: text, Metadata: t.Metadata, Files: []pxp.FileSource{}}
	for _, f := range t.Files {
		params.Files = append(params.Files, f.source(f.Name))
	}
	return pxp.Data(params), nil
}

func (f FileRef) source(name string) pxp.FileSource {
	return pxp.FileSource{Filename: name, SHA256: string(f.Digest), URI: f.uri(), Bytes: f.Bytes}
}

func (f FileRef) uri() pxp.Source {
	return pxp.Source{Path: FilesPath + string(f.Digest) + "/" + path.Base(f.Name), Params: map[string]string{}}
}

func (f FileSpec) params() pxp.FileParams {
	var params pxp.FileParams
	for _, entry := range f.Entries {
		put := pxp.FileEntry{Kind: entry.Kind, Destination: entry.Destination, LinkSource: entry.LinkSource, URI: pxp.Source{Params: map[string]string{}}}
		if entry.Kind == "file" {
			put.URI, put.SHA256 = entry.File.uri(), string(entry.File.Digest)
		}
		params.Files = append(params.Files, put)
	}
	return params
}

// What a node is asked about a run is a transaction of its own, whose name tells the run
// and the question, so that no answer has to be waited for.
const (
	askStatus = "q"
	askCancel = "c"
)

// about is the request that asks about a run for the n-th time.
func about(r Run, question string, n int, reason string) pxp.Request {
	q := pxp.Request{Transaction: fmt.Sprintf("%s_%s%d", r.ID, question, n)}
	if question == askCancel {
		q.Module, q.Action, q.Params = pxp.Transaction, pxp.Cancel, pxp.Data(pxp.CancelParams{Transaction: r.ID, Reason: reason})
		return q
	}
	q.Module, q.Action, q.Params = pxp.Status, pxp.Query, pxp.Data(pxp.StatusParams{Transaction: r.ID})
	return q
}

// questionOf is the run that a transaction is about, and what was asked; none for the run's own.
func questionOf(transaction string) (run, question string) {
	run, rest, found := strings.Cut(transaction, "_")
	if !found || rest == "" {
		return transaction, ""
	}
	return run, rest[:1]
}
