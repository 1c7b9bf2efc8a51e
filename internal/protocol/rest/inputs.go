package rest

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// CatalogInputs says what nodes' catalogs were made of.
type CatalogInputs interface {
	// Inputs judges a node's newest catalog as if the node asked now, and lists where
	// its catalogs are not used again. NotFound if it has none whose inputs are known.
	Inputs(ctx context.Context, node fleet.Certname) (compile.Verdict, []compile.ReuseStop, error)
}

func (h *nodes) showInputs(ctx context.Context, request api.NameRequest) (api.CatalogInputs, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.CatalogInputs{}, err
	}
	verdict, stops, err := h.inputs.Inputs(ctx, name)
	if err != nil {
		return api.CatalogInputs{}, err
	}
	c, in := verdict.From, verdict.From.Inputs
	answer := api.CatalogInputs{
		Name: string(c.Node), Environment: string(c.Environment), Version: string(c.Version), Catalog: string(c.Catalog), CompiledAt: in.At.UTC(),
		Digest: string(in.Digest()), Engine: in.Engine, Stands: verdict.Holds, Why: verdict.Why, Volatile: in.Volatile,
		Values: []api.InputValue{}, Questions: []api.InputQuestion{}, Stops: []api.ReuseStop{},
		Sources: api.InputSources{
			Files: list(in.Sources.Files), Lists: list(in.Sources.Lists), Names: list(in.Sources.Names),
			Trees: list(in.Sources.Trees), Modules: list(in.Sources.Modules), Anywhere: list(in.Sources.Anywhere),
		},
	}
	if chain := verdict.Chain; chain != nil {
		answer.Follows = &api.CatalogFollows{Rounds: chain.Rounds, Because: chain.Because}
		if !chain.StoppedAt.IsZero() {
			stopped := chain.StoppedAt.UTC().Truncate(time.Second)
			answer.Follows.StoppedAt = &stopped
		}
	}
	for _, v := range in.Values {
		answer.Values = append(answer.Values, api.InputValue{Pointer: v.Pointer, Seen: v.Seen, There: v.Digest != ""})
	}
	for _, q := range in.Asked {
		answer.Questions = append(answer.Questions, api.InputQuestion{Kind: string(q.Kind), Text: q.Text, Rows: q.Rows, Refused: q.Refused})
	}
	for _, s := range stops {
		answer.Stops = append(answer.Stops, api.ReuseStop{
			Version: string(s.Version), At: s.At.UTC().Truncate(time.Second), Reused: string(s.Reused), Fresh: string(s.Fresh),
			Differs: list(s.Differs), Inputs: string(s.Inputs),
		})
	}
	return answer, nil
}

// list is never null.
func list(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}
