package rest

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/submit"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// puppetSpec is a Puppet run.
func (h *orders) puppetSpec(ctx context.Context, request api.JobPuppetRequest) (job.Spec, error) {
	s := job.Spec{Kind: job.Puppet, Puppet: &job.PuppetSpec{
		Tags: request.Tags, SkipTags: request.SkipTags, Debug: request.Debug, Trace: request.Trace, Evaltrace: request.EvalTrace,
		ShowDiff: request.ShowDiff, UseCachedCatalog: request.CachedCatalog,
	}}
	setNoop(s.Puppet, request.Noop)
	if request.Environment == "" {
		return s, nil
	}
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return s, err
	}
	s.Environment = env
	_, _, err = h.tasks.TaskVersion(ctx, env)
	return s, known("environment", err)
}

func setNoop(p *job.PuppetSpec, noop *bool) {
	if noop != nil {
		p.Noop, p.NoNoop = *noop, !*noop
	}
}

// known says which field of an order names a thing that is not there.
func known(field string, err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(fault.NotFound, err, "field %s: %s", field, fault.Detail(err))
	}
	return err
}

// defaultTaskEnvironment is whose code a task is taken from when nobody says.
const defaultTaskEnvironment = "production"

func (h *orders) taskSpec(ctx context.Context, request api.JobTaskRequest) (job.Spec, error) {
	if request.Environment == "" {
		request.Environment = defaultTaskEnvironment
	}
	env, err := fleet.ParseEnvironment(request.Environment)
	if err != nil {
		return job.Spec{}, err
	}
	spec, err := submit.TaskSpec(ctx, h.tasks, env, submit.Task{Name: request.Task, Params: request.Params, Texts: request.Texts, Noop: request.Noop})
	if err != nil {
		return job.Spec{}, err
	}
	return job.Spec{Kind: job.Task, Environment: env, Task: spec}, nil
}

func (h *orders) commandSpec(_ context.Context, request api.JobCommandRequest) (job.Spec, error) {
	return job.Spec{Kind: job.Command, Command: &job.CommandSpec{Command: request.Command}}, nil
}

func (h *orders) scriptSpec(ctx context.Context, request api.JobScriptRequest) (job.Spec, error) {
	if strings.ContainsAny(request.Name, `/\`) {
		return job.Spec{}, fault.New(fault.Invalid, "field name: it is the name of a file, without its directory, not %.80q", request.Name)
	}
	file, err := h.uploaded(ctx, request.Name, request.Digest, request.DryRun)
	return job.Spec{Kind: job.Script, Script: &job.ScriptSpec{Script: file, Arguments: request.Arguments}}, err
}

func (h *orders) fileSpec(ctx context.Context, request api.JobFileRequest) (job.Spec, error) {
	s := job.Spec{Kind: job.File, File: &job.FileSpec{}}
	if len(request.Files) > pxp.MaxFiles {
		return s, fault.New(fault.Invalid, "field files: at most %d can be sent at a time, these are %d", pxp.MaxFiles, len(request.Files))
	}
	for _, entry := range request.Files {
		made := job.FileEntry{Kind: entry.Kind, Destination: entry.Destination, LinkSource: entry.Source}
		if made.Kind == "" {
			made.Kind = "file"
		}
		if made.Kind == "file" {
			var err error
			if made.File, err = h.uploaded(ctx, baseOf(entry.Destination), entry.Digest, request.DryRun); err != nil {
				return s, err
			}
		}
		s.File.Entries = append(s.File.Entries, made)
	}
	return s, nil
}

// baseOf is the last part of a path of any system.
func baseOf(destination string) string {
	return destination[strings.LastIndexAny(destination, `/\`)+1:]
}

// uploaded is a file that was uploaded before; for a plan it need not be.
func (h *orders) uploaded(ctx context.Context, name, text string, plan bool) (job.FileRef, error) {
	digest, err := fleet.ParseDigest(text)
	if err != nil {
		return job.FileRef{}, err
	}
	f := job.FileRef{Name: name, Digest: digest}
	if plan {
		return f, nil
	}
	missing, err := h.blobs.Missing(ctx, []fleet.Digest{digest}) // it is kept for a while after this question
	if err != nil {
		return f, err
	}
	if len(missing) > 0 {
		return f, fault.New(fault.Invalid, "field digest: no file with the digest %s was uploaded; see job.upload", digest)
	}
	blob, err := h.blobs.Open(ctx, digest)
	if err != nil {
		return f, err
	}
	f.Bytes = blob.Size()
	return f, blob.Close()
}

// again is the request that would order a job's task once more, with what is to be changed.
func again(old job.Job, request api.JobRerunRequest) (api.JobTaskRequest, error) {
	t := old.Spec.Task
	fresh := api.JobTaskRequest{Environment: string(old.Spec.Environment), Task: t.Name, Noop: t.Noop, Texts: request.Texts}
	values, changes := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(t.Parameters) > 0 {
		if err := json.Unmarshal(t.Parameters, &values); err != nil {
			return fresh, err
		}
	}
	if len(request.Params) > 0 {
		if json.Unmarshal(request.Params, &changes) != nil || changes == nil {
			return fresh, fault.New(fault.Invalid, "field params: it must be an object")
		}
	}
	maps.Copy(values, changes)
	for name := range request.Texts {
		delete(values, name)
	}
	for _, name := range t.Hidden {
		_, typed := request.Texts[name]
		if _, given := changes[name]; !given && !typed {
			return fresh, fault.New(fault.Invalid, "field params: %s was hidden and is forgotten; give it again", name)
		}
	}
	if request.Noop != nil {
		fresh.Noop = *request.Noop
	}
	text, err := json.Marshal(values)
	fresh.Params = text
	return fresh, err
}
