package rest

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// failing is the outcome that stands for failed and denied.
const failing = "failing"

// auditLog answers the operations of the audit log.
type auditLog struct {
	entries rbac.AuditStore
	chain   *rbac.Chain
	log     *slog.Logger
}

func (h *auditLog) bindings() []binding {
	return []binding{
		answer(api.AuditList, h.listAudit),
		answer(api.AuditChain, h.auditChain),
		answer(api.AuditVerify, h.verifyAudit),
		answer(api.AuditSign, h.signAudit),
	}
}

func (h *auditLog) listAudit(ctx context.Context, request api.AuditRequest) (api.List[api.AuditEntry], error) {
	list := api.List[api.AuditEntry]{Items: []api.AuditEntry{}}
	filter, err := filterOf(request)
	if err != nil {
		return list, err
	}
	entries, err := h.entries.Acts(ctx, filter)
	for _, e := range entries {
		list.Items = append(list.Items, api.AuditEntry{
			ID: e.ID, At: e.At.UTC(), Kind: string(e.ActorKind), Actor: e.Actor, TokenID: e.Token, Operation: e.Operation, Object: e.Object,
			Remote: e.Remote, RequestID: e.RequestID, Outcome: string(e.Outcome), Detail: e.Detail, Mark: string(e.Mark),
		})
	}
	if len(entries) == filter.Limit {
		list.Next = strconv.FormatInt(entries[len(entries)-1].ID, 10)
	}
	return list, err
}

// breakGlassUse is the operation of an entry that says that the token in the data directory is in use: its
// questions are in no entry of their own.
const breakGlassUse = "token.break_glass"

// noteBreakGlass records that the token in the data directory is used from an address, once an hour.
func (h *recorder) noteBreakGlass(ctx context.Context, actor fleet.Actor) {
	if !actor.BreakGlass {
		return
	}
	entry := h.entry(fleet.WithActor(ctx, actor), breakGlassUse, "")
	if !h.glass.due(entry.Remote, entry.At) {
		return
	}
	finish, err := h.audit.Begin(ctx, entry)
	if err != nil {
		h.log.ErrorContext(ctx, "use of the administrator's token not recorded in the audit log", "err", err)
		return
	}
	finish(nil)
}

// glass is when the use of the token in the data directory was recorded last, by address.
type glass struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// due says whether a use is to be recorded.
func (g *glass) due(remote string, now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.told, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Hour })
	if _, told := g.told[remote]; told {
		return false
	}
	if g.told == nil {
		g.told = map[string]time.Time{}
	}
	g.told[remote] = now
	return true
}

func filterOf(request api.AuditRequest) (f rbac.EntryFilter, err error) {
	page, err := pageOf("", request.Limit)
	if err != nil {
		return f, err
	}
	f = rbac.EntryFilter{Actor: request.Actor, Operation: request.Operation, Limit: page.Limit}
	if f.Since, err = momentOf("since", request.Since); err != nil {
		return f, err
	}
	if f.Until, err = momentOf("until", request.Until); err != nil {
		return f, err
	}
	switch outcome := rbac.Outcome(request.Outcome); outcome {
	case failing:
		f.Failing = true
	case "", rbac.Started, rbac.Done, rbac.Failed, rbac.Denied:
		f.Outcome = outcome
	default:
		return f, fault.New(fault.Invalid, "outcome must be started, done, failed, denied or failing, not %.40q", request.Outcome)
	}
	if request.After == "" {
		return f, nil
	}
	if f.Before, err = strconv.ParseInt(request.After, 10, 64); err != nil || f.Before <= 0 {
		return f, fault.New(fault.Invalid, "after must be the next of the page before, not %.40q", request.After)
	}
	return f, nil
}

func momentOf(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return moment, fault.New(fault.Invalid, "%s must be a time such as 2026-03-01T12:00:00Z, not %.40q", field, text)
	}
	return moment, nil
}
