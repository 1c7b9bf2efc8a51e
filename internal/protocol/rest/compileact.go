package rest

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// mayCompile checks whose catalogs are wanted. Of a condition or environment only those
// nodes are wanted that who asks may have compiled; that is looked at page by page.
func (h *compilations) mayCompile(ctx context.Context, request api.CompileNowRequest) (about string, err error) {
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
	allowed, err := seen(ctx, h.gate, fleet.CompileRun, nodes, func(n fleet.Certname) fleet.Object { return fleet.Object{Node: n} })
	if err != nil {
		return "", err
	}
	if len(allowed) < len(nodes) {
		for i, node := range nodes {
			if i == len(allowed) || allowed[i] != node {
				return "", h.gate.allow(ctx, fleet.CompileRun, fleet.Object{Node: node})
			}
		}
	}
	return fmt.Sprintf("%.200s", fmt.Sprint(request.Nodes)), nil
}

func (h *compilations) compileNow(ctx context.Context, request api.CompileNowRequest) (api.CompileNowAnswer, error) {
	answer := api.CompileNowAnswer{Items: []api.Compilation{}}
	nodes, err := certnamesOf(request.Nodes)
	if err != nil {
		return answer, err
	}
	priority := compile.Waited
	if len(nodes) == 0 { // many nodes: agents that wait for theirs go first
		priority = compile.Signed
		s, err := h.selector.selection(ctx, fleet.CompileRun, api.NodeListRequest{Where: request.Where, Environment: request.Environment})
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
	wanted, refused, err := h.wanting.WantNow(ctx, nodes, priority)
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
func (h *compilations) mayPause(ctx context.Context, environment string) (about string, err error) {
	var object fleet.Object
	if environment != "" {
		if object.Environment, err = fleet.ParseEnvironment(environment); err != nil {
			return "", err
		}
	}
	return environment, h.gate.allow(ctx, fleet.CompilePause, object)
}

// maxReason is how long the reason of a pause is, in bytes.
const maxReason = 500

func (h *compilations) mayPauseFor(ctx context.Context, request api.CompilePauseRequest) (about string, err error) {
	if len(request.Reason) > maxReason {
		return "", fault.New(fault.Invalid, "the reason has %d bytes, at most %d are allowed", len(request.Reason), maxReason)
	}
	return h.mayPause(ctx, request.Environment)
}

func (h *compilations) mayResume(ctx context.Context, request api.CompileResumeRequest) (about string, err error) {
	return h.mayPause(ctx, request.Environment)
}

func (h *compilations) pauseCompiling(ctx context.Context, request api.CompilePauseRequest) (api.Nothing, error) {
	return api.Nothing{}, h.pauses.Pause(ctx, compile.Pause{
		Environment: fleet.Environment(request.Environment), By: fleet.ActorFrom(ctx).Name, Reason: request.Reason, At: time.Now(),
	})
}

func (h *compilations) resumeCompiling(ctx context.Context, request api.CompileResumeRequest) (api.Nothing, error) {
	return api.Nothing{}, h.pauses.Resume(ctx, fleet.Environment(request.Environment))
}
