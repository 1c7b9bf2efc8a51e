package compile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func notComparable(format string, args ...any) Verification {
	return Verification{Outcome: NotComparable, Reason: fmt.Sprintf(format, args...)}
}

// again verifies a stored compilation: its order is made of what is known now, and must hold by what the compilation read. So a
// catalog that stands although it should not differs.
func (v *Verifier) again(ctx context.Context, s second) Verification {
	order, _, err := v.Reuser.Orders.Build(ctx, s.Compilation)
	if failed := asError(err); failed != nil {
		return notComparable("%s", failed.Message)
	}
	if err != nil {
		return Verification{Outcome: NotVerified, Reason: "the node's facts or groups could not be read: " + troubleOf(err)}
	}
	s.order = order
	if s.State == Failed {
		if order.digest(v.Reuser.Engine(ctx, s.Environment, s.Version)) != s.Order {
			return notComparable("facts, trusted data, groups or the compiler changed since the compilation failed")
		}
		return v.opinion(ctx, s)
	}
	s.asked = s.Inputs.Asked
	now := Now{Engine: cmp.Or(v.Reuser.Engine(ctx, s.Environment, s.Version), s.Inputs.Engine), Order: order, Asked: s.asked}
	if ok, why := Holds(s.Inputs, now); !ok {
		return notComparable("%s since it was compiled", strings.TrimSuffix(why, " since it was compiled"))
	}
	if s.answers, err = v.answers(ctx, s.Compilation); err != nil {
		return Verification{Outcome: NotVerified, Reason: "the inventory's answers could not be read: " + troubleOf(err)}
	}
	return v.opinion(ctx, s)
}

// answers are what was recorded, or what the same questions are answered now, where that is the same.
func (v *Verifier) answers(ctx context.Context, c Compilation) (map[fleet.Digest]json.RawMessage, error) {
	found := map[fleet.Digest]json.RawMessage{}
	if len(c.Inputs.Asked) == 0 {
		return found, nil
	}
	var wanted []fleet.Digest
	for _, q := range c.Inputs.Asked {
		wanted = append(wanted, q.Answer)
	}
	kept, err := v.Store.Answers(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for _, q := range c.Inputs.Asked {
		rows, ok := kept[q.Answer]
		if !ok {
			rows, _, err = answer(ctx, v.Reuser.Inventory, c.Node, q)
			if err != nil && !fault.Is(err, fault.Invalid) { // what was refused has no rows
				return nil, err
			}
		}
		if fleet.DigestOf(rows) == q.Answer {
			found[q.Answer] = rows
		}
	}
	return found, nil
}

// opinion has plain Puppet compile the order and compares.
func (v *Verifier) opinion(ctx context.Context, s second) Verification {
	if s.Err != nil && s.Err.Cause != CauseCode {
		return notComparable("Tutti's compile ended by %s: %s", s.Err.Cause, s.Err.Message)
	}
	answers, ok := recorded(s.asked, s.answers)
	if !ok {
		return notComparable("what the inventory answered is not kept: it changed since, or is larger than %d MB", MaxRecordedBytes>>20)
	}
	opinion, verdict := v.ask(ctx, s, answers)
	if verdict.Outcome != "" {
		return verdict
	}
	verdict = v.weigh(ctx, s, opinion)
	if verdict.Outcome == Differs {
		verdict = v.doubt(ctx, s, answers, opinion, verdict)
	}
	verdict.Wall = opinion.Cost.Wall
	return verdict
}

// ask asks plain Puppet. The verdict has an outcome if there is no opinion.
func (v *Verifier) ask(ctx context.Context, s second, answers []Recorded) (Opinion, Verification) {
	opinion, err := v.Plain.Opinion(ctx, s.order, answers)
	if failed := asError(err); failed != nil {
		return opinion, Verification{Outcome: NotVerified, Reason: failed.Message}
	}
	if err != nil {
		if ctx.Err() == nil {
			v.Log.WarnContext(ctx, "plain Puppet could not be asked", "node", s.Node, "err", err)
		}
		return opinion, Verification{Outcome: NotVerified, Reason: "plain Puppet could not be asked: " + troubleOf(err)}
	}
	return opinion, Verification{}
}

// weigh compares what Tutti stored with an opinion.
func (v *Verifier) weigh(ctx context.Context, s second, opinion Opinion) Verification {
	if s.Err != nil || opinion.Err != nil {
		return verdictOf(CompareErrors(s.Err, opinion.Err), 1)
	}
	document, err := v.Reuser.Documents.Document(ctx, s.Catalog)
	if err != nil {
		return Verification{Outcome: NotVerified, Reason: "the catalog could not be read: " + troubleOf(err)}
	}
	found, count, err := CompareOpinion(document, opinion)
	if err != nil {
		return Verification{Outcome: NotVerified, Reason: fault.Detail(err)}
	}
	return verdictOf(found, count)
}

func verdictOf(found []Difference, count int) Verification {
	if len(found) == 0 {
		return Verification{Outcome: Same}
	}
	return Verification{Outcome: Differs, Differences: found, Count: count}
}

// doubt looks whether a difference is the code's: code that reads a clock, chance or the world outside gives another catalog each time.
func (v *Verifier) doubt(ctx context.Context, s second, answers []Recorded, first Opinion, verdict Verification) Verification {
	places := make([]string, 0, 3)
	for _, d := range verdict.Differences[:min(3, len(verdict.Differences))] {
		places = append(places, d.String())
	}
	if s.Inputs != nil && len(s.Inputs.Volatile) > 0 {
		reasons := s.Inputs.Volatile[:min(3, len(s.Inputs.Volatile))]
		return notComparable("the code is volatile (%s), and that may explain what differs: %s", strings.Join(reasons, ", "), strings.Join(places, "; "))
	}
	again, failed := v.ask(ctx, s, answers)
	if failed.Outcome != "" {
		return verdict
	}
	if s.Err != nil && !sameOpinion(first, again) {
		return notComparable("plain Puppet does not fail in the same way each time: %s", strings.Join(places, "; "))
	}
	if !sameOpinion(first, again) {
		unnoticed := Difference{What: "plain Puppet gives another catalog each time: the code reads something that changes, and that was not noticed"}
		verdict.Differences = slices.Insert(verdict.Differences, 0, unnoticed)[:min(MaxDifferences, len(verdict.Differences)+1)]
		verdict.Count++
	}
	return verdict
}

// sameOpinion compares two opinions apart from what belongs to one compilation.
func sameOpinion(a, b Opinion) bool {
	if a.Err != nil || b.Err != nil {
		return len(CompareErrors(a.Err, b.Err)) == 0
	}
	found, _, err := CompareOpinion(fmt.Appendf(nil, `{"exported":%s,"catalog":%s}`, catalog.OrEmpty(a.Exported), a.Catalog), b)
	return err == nil && len(found) == 0
}
