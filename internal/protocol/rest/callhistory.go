package rest

import (
	"context"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// CallRecords reads which calls there were; a history.Store does.
type CallRecords interface {
	Calls(ctx context.Context, p history.Page) ([]history.Call, error)
	Call(ctx context.Context, id int64) (history.Call, error)
}

// pastCalls answers the operations of calls that have ended.
type pastCalls struct {
	gate  *gate
	calls CallRecords
}

func (h *pastCalls) bindings() []binding {
	return []binding{each(answer(api.ActionCalls, h.listCalls)), each(answer(api.ActionCallShow, h.showCall))}
}

// callPrefix tells the ids of calls from those of jobs.
const callPrefix = "c"

func callID(text string) (int64, error) {
	number, is := strings.CutPrefix(text, callPrefix)
	id, err := strconv.ParseInt(number, 10, 64)
	if !is || err != nil || id <= 0 {
		return 0, fault.New(fault.Invalid, "a call's id is the letter c and a number, such as c12, not %.40q", text)
	}
	return id, nil
}

// own is whose calls somebody may see; empty: everybody's. Who may read the jobs of some nodes only sees their own calls, too.
func (h *pastCalls) own(ctx context.Context) string {
	if actor := fleet.ActorFrom(ctx); rbac.Scoped(actor, fleet.JobRead) {
		return actor.Name
	}
	return ""
}

func (h *pastCalls) listCalls(ctx context.Context, request api.ActionCallsRequest) (api.List[api.ActionCall], error) {
	list := api.List[api.ActionCall]{Items: []api.ActionCall{}}
	paging, err := pageOf(request.After, request.Limit)
	if err != nil {
		return list, err
	}
	page := history.Page{Limit: paging.Limit, Actor: request.Actor, Module: request.Module}
	if request.After != "" {
		if page.Before, err = callID(request.After); err != nil {
			return list, err
		}
	}
	if own := h.own(ctx); own != "" {
		if page.Actor != "" && page.Actor != own {
			return list, h.notTheirs(ctx)
		}
		page.Actor = own
	}
	calls, err := h.calls.Calls(ctx, page)
	for _, c := range calls {
		list.Items = append(list.Items, callOf(c))
	}
	if len(calls) == page.Limit {
		list.Next = list.Items[len(calls)-1].ID
	}
	return list, err
}

func (h *pastCalls) notTheirs(ctx context.Context) error {
	actor := fleet.ActorFrom(ctx)
	return h.gate.explained(ctx, fleet.JobRead, fault.New(fault.Denied,
		"%s %s has the permission %s for some nodes only, and so for calls of their own", actor.Kind, actor.Name, fleet.JobRead))
}

func (h *pastCalls) showCall(ctx context.Context, request api.ActionCallRequest) (api.ActionCall, error) {
	id, err := callID(request.Call)
	if err != nil {
		return api.ActionCall{}, err
	}
	c, err := h.calls.Call(ctx, id)
	if err != nil {
		return api.ActionCall{}, err
	}
	if own := h.own(ctx); own != "" && own != c.Actor {
		return api.ActionCall{}, h.notTheirs(ctx)
	}
	return callOf(c), nil
}

func callOf(c history.Call) api.ActionCall {
	shown := api.ActionCall{
		ID: callPrefix + strconv.FormatInt(c.ID, 10), Module: c.Module, Action: c.Action, Input: c.Input, Targets: c.Targets, Actor: c.Actor,
		Nodes: c.Nodes, Counts: map[string]int{}, Began: c.Began.UTC(), Ended: c.Ended.UTC(), Left: c.Left,
	}
	for code, n := range c.Counts {
		shown.Counts[code.String()] = n
	}
	return shown
}
