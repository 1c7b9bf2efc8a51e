package server

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// openHinter wires what tells nodes of their catalogs.
func (p *parts) openHinter() (err error) {
	p.hinter, err = deliver.NewHinter(&deliver.Hinter{
		Pointer: p.deliver.Pointer, Teller: teller{sender{p.agents}}, Log: p.log.Logger,
		Default: func() deliver.Apply { return deliver.Apply(p.config.Load().HintApply) },
	}, deliver.DefaultHinter())
	if err != nil {
		return err
	}
	if p.moduleHinter, err = openModuleHinter(p.agents, p.log.Logger); err != nil {
		return err
	}
	stats := p.hinter.Stats
	p.metrics.counter("tutti_hints_told_total", "Nodes that were told that they may have another catalog.", func() float64 { return float64(stats().Told) })
	p.metrics.counter("tutti_hints_merged_total", "Changes that one hint told together with another one.", func() float64 { return float64(stats().Merged) })
	p.metrics.counter("tutti_hints_failed_total", "Nodes that could not be told: they ask on their schedule.", func() float64 { return float64(stats().Failed) })
	p.metrics.gauge("tutti_hints_waiting", "Nodes that are to be told.", func() float64 { return float64(stats().Waiting) })
	return nil
}

// compiled is told of each row that the dispatcher has ended. A plain catalog is what a
// node in live mode may have; the answer to those in released mode is no other than before.
func (p *parts) compiled(c compile.Compilation) {
	p.recorder.Compiled(c)
	p.catalogs.Finished(c)
	p.previews.Finished(c.ID)
	p.compiledThere(strconv.FormatInt(c.ID, 10))
	if c.State == compile.Done && !c.Staged && c.Checks == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), checkTime)
		defer cancel()
		if err := p.deliver.GivenAgain(ctx, c.Node, c.Catalog); err != nil {
			p.log.WarnContext(ctx, "that a catalog is right again is not noted, its node's next request does that", "node", c.Node, "err", err)
		}
		p.hinter.Changed(c.Node, "")
	}
}

// teller is deliver.Teller over the broker.
type teller struct{ sender sender }

// Listens implements deliver.Teller: Tutti's own agent does, if it is connected here.
func (t teller) Listens(node fleet.Certname) bool {
	link, connected := t.sender.Connected(node)
	return connected && strings.HasPrefix(link.Agent, ownAgent)
}

// ownAgent is how Tutti's agent calls itself, before its version.
const ownAgent = "tutti-agent/"

// hinted begins the transactions of hints, which are no runs.
const hinted = "hint-"

// Tell implements deliver.Teller.
func (t teller) Tell(ctx context.Context, node fleet.Certname, p deliver.Pointer, apply deliver.Apply) error {
	params, err := hintParams(p, apply)
	if err != nil {
		return err
	}
	return t.sender.Ask(ctx, node, pxp.Request{
		Transaction: hinted + uuid.NewString(), Module: pxp.Catalog, Action: pxp.Changed, Params: params,
	})
}

// hintParams is what a node is told; see pxp.CatalogChange.
func hintParams(p deliver.Pointer, apply deliver.Apply) ([]byte, error) {
	return json.Marshal(struct {
		deliver.Pointer
		Apply deliver.Apply `json:"apply"`
	}{p, apply})
}
