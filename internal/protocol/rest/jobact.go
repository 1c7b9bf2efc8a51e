package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/target"
)

func (h *jobs) stopJob(ctx context.Context, request api.JobStopRequest) (api.Job, error) {
	j, err := h.job(ctx, fleet.JobStop, request.Job)
	if err != nil {
		return api.Job{}, err
	}
	j, err = h.orders.Stop(ctx, fleet.ActorFrom(ctx), j.ID, request.Kill)
	if err != nil {
		return api.Job{}, err
	}
	return jobOf(j), nil
}

// rerunJob orders what a job did once more. Who asks needs what its first order took.
func (h *orders) rerunJob(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	var request api.JobRerunRequest
	if err := api.Bind(r, &request); err != nil {
		return nil, err
	}
	ctx := r.Context()
	old, err := h.jobs.job(ctx, fleet.JobRead, request.Job)
	if err != nil {
		h.recorder.refuse(ctx, api.JobRerun.Operation().Name, request.Job, err)
		return nil, err
	}
	permission := target.Permissions()[old.Spec.Kind]
	if err := h.gate.explained(ctx, permission, rbac.AllowSome(fleet.ActorFrom(ctx), permission)); err != nil {
		h.recorder.refuse(ctx, api.JobRerun.Operation().Name, request.Job, err)
		return nil, err
	}
	spec, err := h.specAgain(ctx, old, request)
	if err != nil {
		return nil, err
	}
	d := submission{
		orders: h, permission: permission, order: api.JobOrder{DryRun: request.DryRun, SkipDenied: request.SkipDenied, Expect: request.Expect},
		begin: func() error { return begin(subject{request.Job + ": " + auditText(spec)}) },
	}
	return d.enter(ctx, spec, func(s job.Spec) (job.Job, error) {
		return h.orders.Rerun(ctx, fleet.ActorFrom(ctx), old.ID, job.Again{Spec: &s})
	})
}

// specAgain is the order of a job that has ended, with its nodes named, and with what is to be changed.
func (h *orders) specAgain(ctx context.Context, old job.Job, request api.JobRerunRequest) (s job.Spec, err error) {
	if !old.Status.Final() {
		return s, fault.New(fault.Conflict, "job %d is %s: it can be ordered again when it is over", old.ID, old.Status)
	}
	if s, err = h.orderAgain(ctx, old, request); err != nil {
		return s, err
	}
	if s.Targets.Nodes, err = h.nodesAgain(ctx, old.ID, request.Only); err != nil {
		return s, err
	}
	s.Targets = job.Targets{Nodes: s.Targets.Nodes}
	common := api.JobOrder{
		Targets: api.JobTargets{Nodes: certnames(s.Targets.Nodes)}, Ordered: s.Ordered, Concurrency: s.Concurrency, MaxFailures: s.MaxFailures,
		Timeout: api.WholeSeconds(s.Timeout), WaitOffline: api.WholeSeconds(s.WaitOffline), Description: s.Description,
	}
	if request.MaxFailures != nil {
		common.MaxFailures = request.MaxFailures
	}
	replace(&common.Concurrency, request.Concurrency)
	replace(&common.Timeout, request.Timeout)
	replace(&common.WaitOffline, request.WaitOffline)
	if request.Description != "" {
		common.Description = request.Description
	}
	return s, fill(&s, common)
}

func replace[T any](value *T, by *T) {
	if by != nil {
		*value = *by
	}
}

// orderAgain is what every node is asked to do. A task is taken from the code as it is now.
func (h *orders) orderAgain(ctx context.Context, old job.Job, request api.JobRerunRequest) (job.Spec, error) {
	s := old.Spec
	if s.Kind == job.Task {
		fresh, err := again(old, request)
		if err != nil {
			return s, err
		}
		made, err := h.taskSpec(ctx, fresh)
		s.Task = made.Task
		return s, err
	}
	if s.Kind == job.Action && len(s.Action.Hidden) > 0 {
		return s, &fault.Error{
			Kind: fault.Invalid, Detail: fmt.Sprintf("job %d was given %s, which was hidden and is forgotten", old.ID, strings.Join(s.Action.Hidden, ", ")),
			Hint: fmt.Sprintf("call the action anew: tutti action run %s %s", s.Action.Module, s.Action.Action),
		}
	}
	if len(request.Params)+len(request.Texts) > 0 {
		return s, fault.New(fault.Invalid, "field params: job %d is no task and has none", old.ID)
	}
	if request.Noop == nil {
		return s, nil
	}
	if s.Kind != job.Puppet {
		return s, fault.New(fault.Invalid, "field noop: it is for Puppet and tasks, and job %d is a %s", old.ID, s.Kind)
	}
	puppet := *s.Puppet
	setNoop(&puppet, request.Noop)
	s.Puppet = &puppet
	return s, nil
}

// nodesAgain is the nodes of a job, all or those without success.
func (h *orders) nodesAgain(ctx context.Context, id int64, only string) (nodes []fleet.Certname, err error) {
	if only != "" && only != "failed" && only != "all" {
		return nil, fault.New(fault.Invalid, "field only: failed or all, not %.40q", only)
	}
	page := job.RunPage{Limit: 1000}
	if only != "all" {
		if page.States, err = statesOf(failing); err != nil {
			return nil, err
		}
	}
	for {
		runs, err := h.records.Runs(ctx, id, page)
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			nodes, page.After = append(nodes, r.Node), r.Number
		}
		if len(runs) < page.Limit {
			break
		}
	}
	if len(nodes) == 0 {
		return nil, fault.New(fault.Conflict, "job %d succeeded on all of its nodes; order it again for all of them (only: all, or --all)", id)
	}
	return nodes, nil
}

// maxJobFile is the largest file that can be sent to nodes, in bytes.
const maxJobFile = 4 << 30

// uploadJobFile stores a file that a script or file job is about to name.
func (h *orders) uploadJobFile(w http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
	if err := begin(nil); err != nil {
		return nil, err
	}
	body := &sent{Reader: http.MaxBytesReader(w, r.Body, maxJobFile)}
	digest, size, err := h.blobs.Put(r.Context(), body)
	if body.err != nil { // the store need not say so
		return nil, body.err
	}
	return api.JobUploaded{Digest: string(digest), Bytes: size}, err
}

// sent is a file on its way. That its sender broke off is no fault of the store.
type sent struct {
	io.Reader
	err error
}

func (s *sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		s.err = fault.New(fault.Invalid, "the file has more than %d bytes, which is what is allowed", int64(maxJobFile))
	} else if err != nil && !errors.Is(err, io.EOF) {
		s.err = fault.Wrap(fault.Invalid, err, "the upload broke off: %v", err)
	}
	return n, err
}

// allowUpload is who may upload: everybody who may have nodes run scripts or get files.
func (h *gate) allowUpload(ctx context.Context) error {
	actor := fleet.ActorFrom(ctx)
	if rbac.AllowSome(actor, fleet.ScriptRun) == nil {
		return nil
	}
	return h.explained(ctx, fleet.FileSend, rbac.AllowSome(actor, fleet.FileSend))
}
