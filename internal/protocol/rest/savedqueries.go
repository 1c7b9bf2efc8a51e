package rest

import (
	"context"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory/saved"
	"github.com/tutti-project/tutti/internal/pql"
)

// SavedQueries keeps questions under names: saved.Service.
type SavedQueries interface {
	List(ctx context.Context, actor fleet.Actor) ([]saved.Query, error)
	Find(ctx context.Context, actor fleet.Actor, name string) (saved.Query, error)
	Save(ctx context.Context, actor fleet.Actor, name string, d saved.Definition) (saved.Query, error)
	Remove(ctx context.Context, actor fleet.Actor, name string) (saved.Query, error)
}

func (h *questions) queryWords(_ context.Context, request api.QueryWordsRequest) (api.QueryWordList, error) {
	complete := pql.Complete
	if request.Condition {
		complete = pql.CompleteCondition
	}
	list := api.QueryWordList{Begun: pql.Begun(request.Text), Words: []api.QueryWord{}}
	for _, s := range complete(request.Text) {
		list.Words = append(list.Words, api.QueryWord{Text: s.Text, Kind: s.Kind})
	}
	return list, nil
}

func (h *questions) listSaved(ctx context.Context, _ api.Nothing) (api.List[api.SavedQuery], error) {
	queries, err := h.saved.List(ctx, fleet.ActorFrom(ctx))
	list := api.List[api.SavedQuery]{Items: []api.SavedQuery{}}
	for _, q := range queries {
		list.Items = append(list.Items, savedView(q))
	}
	return list, err
}

func (h *questions) showSaved(ctx context.Context, request api.SavedQueryRequest) (api.SavedQuery, error) {
	q, err := h.saved.Find(ctx, fleet.ActorFrom(ctx), request.Saved)
	return savedView(q), err
}

func (h *questions) saveQuery(ctx context.Context, request api.QuerySaveRequest) (api.SavedQuery, error) {
	q, err := h.saved.Save(ctx, fleet.ActorFrom(ctx), request.Saved, saved.Definition{
		Text: request.Query, Description: request.Description, Private: request.Private,
	})
	return savedView(q), err
}

func (h *questions) removeSaved(ctx context.Context, request api.SavedQueryRequest) (api.SavedQuery, error) {
	q, err := h.saved.Remove(ctx, fleet.ActorFrom(ctx), request.Saved)
	return savedView(q), err
}

func savedView(q saved.Query) api.SavedQuery {
	return api.SavedQuery{Name: q.Name, Query: q.Text, Description: q.Description, Private: q.Private, Owner: q.Author, ChangedAt: q.At.UTC()}
}
