package rest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// acting is typed for an act whose audit entry and right depend on what the request
// says: prepare checks both before anything begins.
func acting[Request, Response any](prepare func(context.Context, Request) (about string, err error), act func(context.Context, Request) (Response, error)) action {
	return func(_ http.ResponseWriter, r *http.Request, begin func(any) error) (any, error) {
		var request Request
		if err := api.Bind(r, &request); err != nil {
			return nil, err
		}
		about, err := prepare(r.Context(), request)
		if err != nil {
			return nil, err
		}
		if err := begin(subject{about}); err != nil {
			return nil, err
		}
		return act(r.Context(), request)
	}
}

// mayCompile checks whose catalogs are wanted. Of a condition or environment only those
// nodes are wanted that who asks may have compiled; that is looked at page by page.
func (h *Handler) mayCompile(ctx context.Context, request api.CompileNowRequest) (about string, err error) {
	chosen := request.Environment != "" || request.Where != ""
	switch {
	case len(request.Nodes) == 0 && !chosen:
		return "", fault.New(fault.Invalid, "say whose catalogs are wanted: nodes, environment or where")
	case len(request.Nodes) > 0 && chosen:
		return "", fault.New(fault.Invalid, "nodes stand alone: leave out environment and where")
	case len(request.Nodes) > maxIDs:
		return "", fault.New(fault.Invalid, "nodes has %d names, at most %d are allowed at once", len(request.Nodes), maxIDs)
	case chosen:
		return fmt.Sprintf("%s %.200s", request.Environment, request.Where), nil
	}
	nodes, err := certnamesOf(request.Nodes)
	if err != nil {
		return "", err
	}
	allowed, err := seen(ctx, h, fleet.CompileRun, nodes, func(n fleet.Certname) fleet.Object { return fleet.Object{Node: n} })
	if err != nil {
		return "", err
	}
	if len(allowed) < len(nodes) {
		for i, node := range nodes {
			if i == len(allowed) || allowed[i] != node {
				return "", h.allow(ctx, fleet.CompileRun, fleet.Object{Node: node})
			}
		}
	}
	return fmt.Sprintf("%.200s", fmt.Sprint(request.Nodes)), nil
}

func (h *Handler) compileNow(ctx context.Context, request api.CompileNowRequest) (api.CompileNowAnswer, error) {
	answer := api.CompileNowAnswer{Items: []api.Compilation{}}
	nodes, err := certnamesOf(request.Nodes)
	if err != nil {
		return answer, err
	}
	priority := compile.Waited
	if len(nodes) == 0 { // many nodes: agents that wait for theirs go first
		priority = compile.Signed
		s, err := h.selection(ctx, fleet.CompileRun, api.NodeListRequest{Where: request.Where, Environment: request.Environment})
		if err != nil {
			return answer, err
		}
		answer.Next, err = s.page(ctx, inventory.Page{After: request.After, Limit: maxIDs}, func(node inventory.Node, _ bool) {
			if node.DeactivatedAt.IsZero() && node.ExpiredAt.IsZero() {
				nodes = append(nodes, node.Certname)
			}
		})
		if err != nil {
			return answer, err
		}
	}
	wanted, refused, err := h.Compiling.WantNow(ctx, nodes, priority)
	if err != nil {
		return answer, err
	}
	for _, c := range wanted {
		answer.Items = append(answer.Items, compilationOf(c))
	}
	answer.Refused = byNode(refused)
	answer.Pauses, err = h.paused(ctx)
	return answer, err
}

// mayPause asks for the right to pause an environment, or all of them.
func (h *Handler) mayPause(ctx context.Context, environment string) (about string, err error) {
	var object fleet.Object
	if environment != "" {
		if object.Environment, err = fleet.ParseEnvironment(environment); err != nil {
			return "", err
		}
	}
	return environment, h.allow(ctx, fleet.CompilePause, object)
}

// maxReason is how long the reason of a pause is, in bytes.
const maxReason = 500

func (h *Handler) pauseCompiling(ctx context.Context, request api.CompilePauseRequest) (nothing, error) {
	return nothing{}, h.Compiling.Pause(ctx, compile.Pause{
		Environment: fleet.Environment(request.Environment), By: fleet.ActorFrom(ctx).Name, Reason: request.Reason, At: time.Now(),
	})
}

func (h *Handler) resumeCompiling(ctx context.Context, request api.CompileResumeRequest) (nothing, error) {
	return nothing{}, h.Compiling.Resume(ctx, fleet.Environment(request.Environment))
}

func (h *Handler) compileActions() map[string]action {
	return map[string]action{
		api.CompileQueue.Name: typed(h.showQueue),
		api.CompileList.Name:  typed(h.listCompilations),
		api.CompileShow.Name:  typed(h.showCompilation),
		api.CompileNow.Name:   acting(h.mayCompile, h.compileNow),

		api.CompileVerify.Name:   acting(h.mayVerify, h.verifyCatalog),
		api.CompileSample.Name:   typed(h.sampleNodes),
		api.CompileVerified.Name: typed(h.listVerifications),
		api.CompilePause.Name: acting(func(ctx context.Context, r api.CompilePauseRequest) (string, error) {
			if len(r.Reason) > maxReason {
				return "", fault.New(fault.Invalid, "the reason has %d bytes, at most %d are allowed", len(r.Reason), maxReason)
			}
			return h.mayPause(ctx, r.Environment)
		}, h.pauseCompiling),
		api.CompileResume.Name: acting(func(ctx context.Context, r api.CompileResumeRequest) (string, error) {
			return h.mayPause(ctx, r.Environment)
		}, h.resumeCompiling),
	}
}
