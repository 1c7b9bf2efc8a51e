package cli

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fleet"
)

// mcoQuestion is an action as mco calls it.
type mcoQuestion struct {
	module, action string
	texts          map[string]string
	own            []string // Tutti's own command for it; nil: action run
	only           string   // an expression that must hold besides the conditions; empty: none
	atOnce         int      // of an action that changes something: how many nodes at a time, in place of --batch; 0: as that says
}

// mcoAnswers is what came of it.
type mcoAnswers struct {
	module    string
	action    action.Action
	results   *action.Schema
	found     discovery
	all       []action.Answer // of nodes that were discovered, by name
	ended     map[string]time.Time
	began     time.Time
	took      time.Duration // without the discovery
	verbosely bool
}

// callAction discovers nodes and calls an action of them: one that only reads is asked, every other one is a job that is waited for. Without
// any node the error says so, with mco's exit code.
func (c *call) callAction(ctx context.Context, m *mcoFlags, q mcoQuestion) (*mcoAnswers, error) {
	described, err := describedAction(ctx, c.app, q.module, q.action)
	if err != nil {
		return nil, err
	}
	if err := c.checkSleep(q.module, described); err != nil {
		return nil, err
	}
	conditions, err := m.conditions(c.app)
	if err != nil {
		return nil, err
	}
	if q.only != "" {
		conditions.Select = joinedBy(conditions.Select, q.only)
	}
	c.inTutti(slices.Concat(q.words(secretsOfAction(q.module, described)), m.nodeWords(conditions), m.paceWords(q, described.ReadOnly))...)
	conditions.Modules = append(conditions.Modules, q.module) // as mco does it
	p := &mcoAnswers{module: q.module, verbosely: m.verbose, ended: map[string]time.Time{}}
	if p.found, err = c.discover(ctx, m, conditions); err != nil {
		return nil, err
	}
	if len(p.found.nodes) == 0 {
		c.says("\nNo request sent, we did not discover any nodes.")
		return nil, c.ends(mcoNobody)
	}
	c.says("Discovering nodes .... %d", len(p.found.nodes))
	p.action = actionOf(described)
	p.began = time.Now()
	if described.ReadOnly {
		err = p.ask(ctx, c, m, q)
	} else {
		err = p.order(ctx, c, m, q)
	}
	if err != nil {
		return nil, err
	}
	p.took = time.Since(p.began)
	slices.SortFunc(p.all, func(a, b action.Answer) int { return strings.Compare(string(a.Node), string(b.Node)) })
	p.results, err = action.Compile(p.action.Results)
	return p, err
}

// joinedBy is an expression with a second one that must hold, too.
func joinedBy(first, second string) string {
	if first == "" {
		return second
	}
	return "(" + first + ") and " + second
}

// words are the question as Tutti's command has it.
func (q mcoQuestion) words(secret secretParams) []string {
	if q.own != nil {
		return q.own
	}
	words := []string{"action", "run", q.module, q.action}
	for _, name := range slices.Sorted(maps.Keys(q.texts)) {
		if slices.Contains(secret.names, name) {
			words = append(words, "--ask", name)
			continue
		}
		words = append(words, name+"="+q.texts[name])
	}
	return words
}

// actionOf is an action as the API tells of it.
func actionOf(a api.Action) action.Action {
	described := action.Action{
		Name: a.Name, Description: a.Description, ReadOnly: a.ReadOnly, Display: action.Display(a.Display), Timeout: action.Seconds(a.Timeout),
		Input: []byte(a.Input), Results: []byte(a.Results),
	}
	for _, sum := range a.Aggregates {
		described.Aggregates = append(described.Aggregates, action.Aggregate{
			Function: action.Function(sum.Function), Field: sum.Field, Format: sum.Format, Labels: sum.Labels,
		})
	}
	return described
}

// ask asks an action that only reads.
func (p *mcoAnswers) ask(ctx context.Context, c *call, m *mcoFlags, q mcoQuestion) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	request := api.ActionAskRequest{
		Module: q.module, Action: q.action, ActionInput: api.ActionInput{Texts: q.texts}, Targets: api.JobTargets{Nodes: p.found.nodes},
		Timeout: m.timeout.Milliseconds(), Batch: m.batch, BatchSleep: m.sleep.Milliseconds(),
	}
	return api.ActionAsk.Each(ctx, client, request, func(e api.ActionEvent) error {
		if e.Answer == nil {
			return nil
		}
		answer, err := answerOf(*e.Answer)
		if err == nil {
			p.all = append(p.all, answer)
		}
		return err
	})
}

// order runs an action that changes something as a job, and takes what its runs gave.
func (p *mcoAnswers) order(ctx context.Context, c *call, m *mcoFlags, q mcoQuestion) error {
	flags := orderFlags{targetFlags: targetFlags{nodes: p.found.nodes}, concurrency: m.batch, timeout: m.timeout, yes: m.yes}
	if q.atOnce > 0 {
		flags.concurrency = q.atOnce
	}
	taken := errors.New("taken") // a job's own verdict has other words and exit codes
	err := launch(ctx, c.app, flags, newJob{
		does: q.module + " " + q.action,
		send: ordered(api.JobAction, func(order api.JobOrder) api.JobActionRequest {
			return api.JobActionRequest{JobOrder: order, ActionInput: api.ActionInput{Texts: q.texts}, Module: q.module, Action: q.action}
		}),
		receive: func(ctx context.Context, w *watcher) error {
			for _, run := range sortedRuns(w.runs) {
				result, err := resultOf(ctx, c.app, w.client, w.job.ID, run)
				if err != nil {
					return err
				}
				p.all = append(p.all, answerOfRun(result))
				if run.FinishedAt != nil {
					p.ended[run.Node] = *run.FinishedAt
				}
			}
			return taken
		},
	})
	if errors.Is(err, taken) {
		return nil
	}
	return err
}

// answerOfRun is the run of a job as the answer of a node.
func answerOfRun(r runResult) action.Answer {
	a := action.Answer{Node: fleet.Certname(r.Node), Message: r.Reason}
	switch r.State {
	case "succeeded":
		a.Code, a.Message, a.Data = action.Done, "", []byte(r.Stdout)
	case "failed", "refused":
		a.Code = action.Aborted
	case "offline":
		a.Code = action.Offline
	case "timed_out":
		a.Code = action.Silent
	case "lost":
		a.Code = action.Left
	case "skipped", "killed", "waiting":
		a.Code = action.Unasked
	default:
		a.Code = action.Other
	}
	return a
}

// replied says whether mco takes an answer as one: a node that may not be asked is one that refuses.
func replied(a action.Answer) bool { return a.Code.Answered() || a.Code == action.Denied }

// code is mco's exit code.
func (p *mcoAnswers) code() int {
	answered := false
	for _, a := range p.all {
		if a.Code != action.Done && replied(a) {
			return mcoFailed
		}
		answered = answered || a.Code == action.Done
	}
	if !answered {
		return mcoSilent
	}
	return exitDone
}

// silent are the nodes that did not answer.
func (p *mcoAnswers) silent() (names []string) {
	for _, a := range p.all {
		if !replied(a) {
			names = append(names, string(a.Node))
		}
	}
	return names
}

// forPrograms is mco's JSON of answers.
func (p *mcoAnswers) forPrograms() []mcoJSON {
	list := []mcoJSON{}
	for _, a := range p.all {
		if replied(a) {
			list = append(list, mcoJSON{
				Agent: p.module, Action: p.action.Name, Sender: string(a.Node), StatusCode: statusCode(a.Code), StatusMsg: statusText(a),
				Data: json.RawMessage(a.Data),
			})
		}
	}
	return list
}

// mcoJSON is an answer as mco -j prints it.
type mcoJSON struct {
	Agent      string          `json:"agent"`
	Action     string          `json:"action"`
	Sender     string          `json:"sender"`
	StatusCode int             `json:"statuscode"`
	StatusMsg  string          `json:"statusmsg"`
	Data       json.RawMessage `json:"data,omitempty"`
}
