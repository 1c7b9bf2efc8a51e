package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/action/supply"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// supplies hints to nodes that their code supplies other modules of actions than before. Those of other environments are told, too: they
// ask, and hear that nothing is new.
type supplies struct {
	library *code.Library
	agents  agents
	hinter  *deliver.Hinter
	log     *slog.Logger
}

// of names what an environment supplies now.
func (s supplies) of(ctx context.Context, env fleet.Environment) fleet.Digest {
	tree, err := s.library.Current(ctx, env)
	switch {
	case err == nil:
		return supply.Of(tree).Digest()
	case fault.Of(err) != fault.NotFound:
		s.log.WarnContext(ctx, "which modules of actions the code supplies is not known; nodes ask on their schedule", "environment", env, "err", err)
	}
	return ""
}

// changed tells nodes if it is something else than before.
func (s supplies) changed(ctx context.Context, env fleet.Environment, before fleet.Digest) {
	now := s.of(ctx, env)
	if now == before {
		return
	}
	for _, node := range s.agents.nodes() {
		s.hinter.Changed(node, deliver.Scheduled)
	}
}

// openModuleHinter makes what tells nodes, few at a time. Modules change seldom: nobody has to wait for the next hint.
func openModuleHinter(agents agents, log *slog.Logger) (*deliver.Hinter, error) {
	often := deliver.DefaultHinter()
	often.Each = time.Second
	return deliver.NewHinter(&deliver.Hinter{
		Pointer: func(context.Context, fleet.Certname) (deliver.Pointer, error) { return deliver.Pointer{}, nil },
		Teller:  moduleTeller{teller{sender{agents}}}, Log: log,
		Default: func() deliver.Apply { return deliver.Scheduled },
	}, often)
}

// moduleTeller tells a node to ask which modules it has.
type moduleTeller struct{ teller }

// Tell implements deliver.Teller.
func (t moduleTeller) Tell(ctx context.Context, node fleet.Certname, _ deliver.Pointer, _ deliver.Apply) error {
	return t.sender.Ask(ctx, node, pxp.Request{Transaction: hinted + uuid.NewString(), Module: pxp.Modules, Action: pxp.Changed, Params: pxp.Data(struct{}{})})
}
