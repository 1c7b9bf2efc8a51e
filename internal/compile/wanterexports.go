package compile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// place is a node in an environment.
type place struct {
	node fleet.Certname
	env  fleet.Environment
}

// chains is who is compiled because of others, and what is added to that.
type chains struct {
	*Wanter
	known   map[place]Chain
	wants   []Want
	going   []Chain
	stopped []Chain
}

func (w *Wanter) chained(ctx context.Context) (*chains, error) {
	list, err := w.Store.Chains(ctx)
	known := make(map[place]Chain, len(list))
	for _, c := range list {
		known[place{c.Node, c.Environment}] = c
	}
	return &chains{Wanter: w, known: known}, err
}

// rounds is how many compilations in a row led to a node's catalog without another
// cause; zero for one that has another cause.
func (c *chains) rounds(node fleet.Certname, env fleet.Environment) int {
	return c.known[place{node, env}].Rounds
}

// roundsOf is the most that any catalog of a node has.
func (c *chains) roundsOf(node fleet.Certname) (most int) {
	for at, chain := range c.known {
		if at.node == node {
			most = max(most, chain.Rounds)
		}
	}
	return most
}

// follow wants a compilation as one round of a chain, unless that has too many: then
// it is stopped until there is another cause, and reported once.
func (c *chains) follow(want Want, rounds int, because string) {
	chain := Chain{Node: want.Node, Environment: want.Environment, Rounds: rounds, Because: because}
	if rounds <= c.cfg.Rounds {
		c.wants, c.going = append(c.wants, want), append(c.going, chain)
		return
	}
	before := c.known[place{want.Node, want.Environment}]
	chain.StoppedAt = before.StoppedAt
	if chain.StoppedAt.IsZero() {
		chain.StoppedAt = time.Now()
		c.count.stopped.Add(1)
		c.Log.Warn("catalogs do not settle: a node is not compiled ahead any more until something else changes",
			"node", want.Node, "environment", want.Environment, "rounds", rounds, "follows", because)
	}
	chain.Rounds = c.cfg.Rounds + 1
	c.stopped = append(c.stopped, chain)
}

// join adds what goes on to what is wanted for another cause, which ends a chain.
func (c *chains) join(wants []Want) (all []Want, going []Chain) {
	all = wants
	for i, want := range c.wants {
		if joined := merge(all, []Want{want}); len(joined) > len(all) {
			all, going = joined, append(going, c.going[i])
		}
	}
	return all, going
}

// asker is a node whose code asked a question, and the answer that it got.
type asker struct {
	standing Standing
	got      Question
}

// askers finds who asked what, among nodes that are judged by these catalogs.
func (w *Wanter) askers(ctx context.Context, fits func(Question) bool) (map[Question][]asker, error) {
	standings, err := w.Standings.Standings(ctx, "")
	if err != nil {
		return nil, err
	}
	w.prints.forget(standings)
	if err := w.prints.load(ctx, standings); err != nil {
		return nil, err
	}
	found := map[Question][]asker{}
	for _, s := range standings {
		left := w.prints.known[s.Plain.Inputs]
		if left == nil {
			left = w.prints.known[s.Staged.Inputs]
		}
		if left == nil {
			continue
		}
		for _, q := range left.asked {
			if fits(q) {
				key := Question{Kind: q.Kind, Text: q.Text}
				found[key] = append(found[key], asker{s, q})
			}
		}
	}
	return found, nil
}

// follow wants catalogs of those who collected what others export otherwise now.
func (w *Wanter) follow(ctx context.Context, current map[fleet.Environment]fleet.Digest, exports []Change, c *chains) error {
	asked, err := w.askers(ctx, func(q Question) bool {
		return q.Kind == AskedCollect && slices.ContainsFunc(exports, func(e Change) bool { return collects(q, e) })
	})
	if err != nil {
		return err
	}
	for q, askers := range asked {
		differ, _, err := w.ask(ctx, q, askers)
		if err != nil {
			w.Log.WarnContext(ctx, "a collector could not be asked again", "question", q.Text, "err", err)
			continue
		}
		for _, a := range differ {
			rounds, because := 0, ""
			for _, e := range exports {
				if e.Node != a.standing.Node && collects(q, e) && (because == "" || c.roundsOf(e.Node) > rounds) {
					rounds, because = c.roundsOf(e.Node), "exports of "+string(e.Node)
				}
			}
			if because != "" {
				w.again(ctx, current, a, c, rounds+1, because)
			}
		}
	}
	return nil
}

// collects says whether a collector may find what changed.
func collects(q Question, exports Change) bool {
	return slices.ContainsFunc(exports.Details, func(kind string) bool {
		return kind == Anything || strings.EqualFold(kind, typeOf(q))
	})
}

// typeOf is the type of resource that a collector looks for.
func typeOf(q Question) string {
	var asked struct{ Type string }
	_ = json.Unmarshal([]byte(q.Text), &asked) // one that cannot be read looks for nothing
	return asked.Type
}

// ask asks a question again and parts those who asked it by whether they would get
// another answer. It is asked once for all: a collector leaves out what the asking
// node exports itself, which only matters to nodes that export what it looks for.
func (w *Wanter) ask(ctx context.Context, q Question, askers []asker) (differ, same []asker, err error) {
	everybody, exporters, err := w.answer(ctx, q, "")
	if err != nil {
		return nil, nil, err
	}
	for _, a := range askers {
		now := everybody
		if exporters[a.standing.Node] {
			if now, _, err = w.answer(ctx, q, a.standing.Node); err != nil {
				return nil, nil, err
			}
		}
		if now == a.got {
			same = append(same, a)
		} else {
			differ = append(differ, a)
		}
	}
	return differ, same, nil
}

// answer is a question with its answer as node would get it, and who exports what is
// in it.
func (w *Wanter) answer(ctx context.Context, q Question, node fleet.Certname) (Question, map[fleet.Certname]bool, error) {
	rows, count, err := answer(ctx, w.Reuser.Inventory, node, q)
	if fault.Is(err, fault.Invalid) {
		return q.RefusedFor(err), nil, nil
	}
	if err != nil {
		return q, nil, err
	}
	exporters := map[fleet.Certname]bool{}
	if q.Kind == AskedCollect && node == "" {
		var found []struct{ Certname fleet.Certname }
		if err := json.Unmarshal(rows, &found); err != nil {
			return q, nil, fault.Wrap(fault.Internal, err, "an answer cannot be read")
		}
		for _, f := range found {
			exporters[f.Certname] = true
		}
	}
	return Question{Kind: q.Kind, Text: q.Text, Rows: count, Answer: fleet.DigestOf(rows)}, exporters, nil
}

// again wants the catalog of a node that would get another answer.
func (w *Wanter) again(ctx context.Context, current map[fleet.Environment]fleet.Digest, a asker, c *chains, rounds int, because string) {
	s := a.standing
	version := current[s.Environment]
	if version == "" || s.FactsSeq == 0 || slices.ContainsFunc(c.wants, func(o Want) bool { return o.Node == s.Node }) {
		return
	}
	released, err := w.inReleased(ctx, []Standing{s})
	if err != nil {
		w.Log.WarnContext(ctx, "a node's mode is not known, its catalog is staged", "node", s.Node, "err", err)
	}
	c.follow(Want{
		Node: s.Node, Environment: s.Environment, Version: version, FactsSeq: s.FactsSeq,
		Priority: NewExports, At: time.Now(), Staged: err != nil || released[s.Node], Fresh: true,
	}, rounds, because)
}

// questions asks again what code asked, some of it each time, and wants catalogs of
// nodes that would get another answer. It notices what no change is noted of: queries
// may ask for anything. A node that has the answer has settled.
func (w *Wanter) questions(ctx context.Context, current map[fleet.Environment]fleet.Digest) error {
	now := time.Now()
	if now.Before(w.askAt) || !w.Follow() {
		return nil
	}
	w.askAt = now.Add(w.cfg.Questions)
	asked, err := w.askers(ctx, func(Question) bool { return true })
	if err != nil || len(asked) == 0 {
		return err
	}
	c, err := w.chained(ctx)
	if err != nil {
		return err
	}
	busy, err := w.busy(ctx, current)
	if err != nil {
		return err
	}
	settled := map[place]bool{}
	for _, q := range inTurn(asked, w.asked) {
		if time.Since(now) > w.cfg.Asking {
			break
		}
		w.asked = q.Text
		differ, same, err := w.ask(ctx, q, asked[q])
		if err != nil {
			w.Log.WarnContext(ctx, "a question of code could not be asked again", "question", q.Text, "err", err)
			continue
		}
		for _, a := range differ {
			at := place{a.standing.Node, a.standing.Environment}
			if busy[at] {
				continue // it may have the answer soon
			}
			w.again(ctx, current, a, c, c.rounds(at.node, at.env)+1, fmt.Sprintf("the answer to a %s: %.200s", q.Kind, q.Text))
		}
		for _, a := range same {
			at := place{a.standing.Node, a.standing.Environment}
			settled[at] = !busy[at]
		}
	}
	for at, still := range settled {
		if still && c.rounds(at.node, at.env) > 0 && !slices.ContainsFunc(c.wants, func(o Want) bool { return o.Node == at.node }) &&
			!slices.ContainsFunc(c.stopped, func(o Chain) bool { return o.Node == at.node }) {
			c.stopped = append(c.stopped, Chain{Node: at.node, Environment: at.env}) // none any more
		}
	}
	if err := w.Store.SaveChains(ctx, c.stopped); err != nil {
		return err
	}
	if err := w.Store.Settle(ctx, nil, c.wants, c.going); err != nil {
		return err
	}
	w.wanted(c.wants)
	return nil
}

// busy tells of which nodes something is wanted or being compiled.
func (w *Wanter) busy(ctx context.Context, current map[fleet.Environment]fleet.Digest) (map[place]bool, error) {
	found := map[place]bool{}
	for env, version := range current {
		nodes, err := w.Standings.Waiting(ctx, env, version)
		if err != nil {
			return nil, err
		}
		for _, node := range nodes {
			found[place{node, env}] = true
		}
	}
	return found, nil
}

// inTurn lists questions by text, those after the last one first.
func inTurn(asked map[Question][]asker, last string) []Question {
	list := make([]Question, 0, len(asked))
	for q := range asked {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b Question) int { return strings.Compare(a.Text+string(a.Kind), b.Text+string(b.Kind)) })
	at := slices.IndexFunc(list, func(q Question) bool { return q.Text > last })
	if at < 0 {
		return list
	}
	return append(slices.Clone(list[at:]), list[:at]...)
}
