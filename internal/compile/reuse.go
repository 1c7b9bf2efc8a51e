package compile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Differ compares versions.
type Differ interface {
	// Changes says how two versions of an environment differ; NotFound when one of
	// them is not stored any more. The caller changes nothing.
	Changes(ctx context.Context, env fleet.Environment, from, to fleet.Digest) (*Changes, error)
}

// ReuserParts is what a reuser works with. The settings are asked for each time.
type ReuserParts struct {
	Store       Reusables
	Queue       Queue
	Orders      Orders
	Inventory   Inventory
	Versions    Differ
	Documents   Documents
	Results     Results                                                                       // nil: nobody keeps resources
	Engine      func(ctx context.Context, env fleet.Environment, version fleet.Digest) string // see Compiler
	Await       func(ctx context.Context, env fleet.Environment, version fleet.Digest)        // until Engine has a name, or will have none; nil: it has one
	Wake        func()                                                                        // hints that something is wanted
	VolatileTTL func() time.Duration                                                          // how long a volatile catalog is used again
	CheckOneIn  func() int                                                                    // one in so many reuses is compiled again and compared; 0: none
	Log         *slog.Logger
}

// Reuser answers for catalogs without compiling them: the stored one stands while
// all that was read for it is as it was. It may be used concurrently.
type Reuser struct {
	ReuserParts
	count struct{ reused, restated, checked, wrong atomic.Uint64 }
}

// NewReuser returns a reuser.
func NewReuser(parts ReuserParts) *Reuser {
	if parts.Log == nil {
		parts.Log = slog.New(slog.DiscardHandler)
	}
	return &Reuser{ReuserParts: parts}
}

// Wish is a catalog that somebody wants.
type Wish struct {
	Node        fleet.Certname
	Environment fleet.Environment
	Version     fleet.Digest
	Trusted     json.RawMessage
	Transaction string
	Priority    Priority
	Staged      bool // see Compilation: nothing becomes the node's newest catalog
}

// Verdict is whether a stored catalog stands.
type Verdict struct {
	From  Compilation // the one that gave the stored catalog, with its inputs
	Holds bool
	Why   string // it does not
	seq   int64  // of the facts that it was held against
	Chain *Chain // the node is compiled because of others; set where it is shown
}

// Find returns a finished compilation whose catalog is what w would be given, or
// false. One that was compiled of another version is restated for w's, unless w is
// staged: then it is given with its inputs, for w's own row. So it is if the brake holds it:
// then what is found is staged though w is not. Whatever goes wrong on the way is a reason to
// compile, and no error.
func (r *Reuser) Find(ctx context.Context, w Wish) (Compilation, bool) {
	log := r.Log.With("node", w.Node, "environment", w.Environment, "version", w.Version.Short())
	verdict, err := r.Judge(ctx, w)
	if err != nil {
		if fault.Of(err) != fault.NotFound {
			log.WarnContext(ctx, "catalog is compiled, whether the stored one stands is not known", "err", err)
		}
		return Compilation{}, false
	}
	if !verdict.Holds {
		log.DebugContext(ctx, "catalog is compiled, the stored one does not stand", "why", verdict.Why)
		return Compilation{}, false
	}
	found := verdict.From
	if w.Staged {
		return standing(verdict, w), true
	}
	if found.Staged && r.held(ctx, w, verdict) {
		return standing(verdict, w), true
	}
	if found.Version != w.Version || found.Staged {
		if found, err = r.restate(ctx, w, verdict); err != nil {
			log.WarnContext(ctx, "catalog is compiled, the stored one could not be restated", "err", err)
			return Compilation{}, false
		}
		r.count.restated.Add(1)
	}
	r.count.reused.Add(1)
	found.Inputs = nil
	r.sample(ctx, w, found)
	return found, true
}

// held says whether the brake keeps a staged catalog that stands from its node. If that is not known it is held:
// the node keeps what it has.
func (r *Reuser) held(ctx context.Context, w Wish, v Verdict) bool {
	if r.Results == nil {
		return false
	}
	held, err := r.Results.Held(ctx, standing(v, w))
	if err != nil {
		r.Log.WarnContext(ctx, "whether a catalog is held is not known, its node keeps what it has", "node", w.Node, "err", err)
	}
	return held || err != nil
}

// standing is what a staged row takes over of a catalog that stands: it keeps the
// inputs itself, as nothing is restated.
func standing(v Verdict, w Wish) Compilation {
	found := v.From
	if found.Version != w.Version {
		found.Version, found.UUID = w.Version, uuid.NewString()
	}
	found.FactsSeq = v.seq
	return found
}

// Judge decides whether the stored catalog of a node stands. NotFound if it has none
// in that environment.
func (r *Reuser) Judge(ctx context.Context, w Wish) (Verdict, error) {
	from, err := r.Store.Newest(ctx, w.Node, w.Environment)
	if err == nil || fault.Of(err) != fault.NotFound {
		v, err := r.judge(ctx, w, from, err)
		if v.Holds || err != nil {
			return v, err
		}
		if staged, ok := r.judgeStaged(ctx, w); ok {
			return staged, nil
		}
		return v, nil
	}
	if staged, ok := r.judgeStaged(ctx, w); ok {
		return staged, nil
	}
	return Verdict{}, err
}

// judgeStaged judges the newest staged catalog; ok if it stands. Whatever goes wrong
// is a reason not to use it.
func (r *Reuser) judgeStaged(ctx context.Context, w Wish) (Verdict, bool) {
	from, err := r.Store.NewestStaged(ctx, w.Node, w.Environment)
	v, err := r.judge(ctx, w, from, err)
	return v, err == nil && v.Holds
}

// judge judges one catalog, unless it could not be read.
func (r *Reuser) judge(ctx context.Context, w Wish, from Compilation, err error) (Verdict, error) {
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{From: from}
	if v.Why, err = r.barred(ctx, from, w.Version); v.Why != "" || err != nil {
		return v, err
	}
	return r.wholly(ctx, w, v, r.awaited(ctx, w))
}

// Stands judges a compilation, given with its inputs, by all that it read but files, which its version has as they
// were read, and by no age. A compiler that is not known yet is no other one.
func (r *Reuser) Stands(ctx context.Context, from Compilation, w Wish) (Verdict, error) {
	from.Stands = w.Version
	return r.wholly(ctx, w, Verdict{From: from}, cmp.Or(r.engine(ctx, w), from.Inputs.Engine))
}

// awaited is engine for who would compile otherwise. A compiler has to say what it is before it compiles, too: after a start of the
// server, all catalogs that are asked for would be compiled anew until it has.
func (r *Reuser) awaited(ctx context.Context, w Wish) string {
	if r.Await != nil {
		r.Await(ctx, w.Environment, w.Version)
	}
	return r.engine(ctx, w)
}

// engine is what would compile what is wished for; empty: it has not said yet what it is.
func (r *Reuser) engine(ctx context.Context, w Wish) string {
	return r.Engine(ctx, w.Environment, w.Version)
}

// wholly judges v.From by its inputs, with the answers to what code asked.
func (r *Reuser) wholly(ctx context.Context, w Wish, v Verdict, engine string) (Verdict, error) {
	now, err := r.quietly(ctx, w, &v, engine)
	if !v.Holds || err != nil || len(v.From.Inputs.Asked) == 0 {
		return v, err
	}
	if now.Asked, err = again(ctx, r.Inventory, w.Node, v.From.Inputs.Asked); err != nil {
		v.Holds = false
		return v, err
	}
	v.Holds, v.Why = Holds(v.From.Inputs, now)
	return v, nil
}

// quietly judges v.From by all but the answers to what code asked, which cost most.
func (r *Reuser) quietly(ctx context.Context, w Wish, v *Verdict, engine string) (now Now, err error) {
	now.Engine = engine
	if since := v.From.unchangedSince(); since != w.Version { // first: it costs least, and most that does not stand does not because of it
		if now.Changes, err = r.Versions.Changes(ctx, w.Environment, since, w.Version); err != nil {
			return now, err
		}
		what, ok := now.Changes.Touch(&v.From.Inputs.Sources)
		if !ok {
			v.Why = what
			return now, nil
		}
	}
	now.Order, v.seq, err = r.Orders.Build(ctx, Compilation{
		Node: w.Node, Environment: w.Environment, Version: w.Version, Trusted: w.Trusted,
	})
	if err != nil {
		return now, err
	}
	quiet := *v.From.Inputs
	quiet.Asked = nil
	v.Holds, v.Why = Holds(&quiet, now)
	return now, nil
}

// unchangedSince is the last version that is known to have the files as they were read.
func (c Compilation) unchangedSince() fleet.Digest { return cmp.Or(c.Stands, c.Version) }

// still says whether a node's stored catalog stands but for answers and age, which
// are looked at when it is asked for. A compiler that is not known yet is no other one.
func (r *Reuser) still(ctx context.Context, w Wish) (bool, error) {
	from, err := r.Store.Newest(ctx, w.Node, w.Environment)
	if err == nil {
		v := Verdict{From: from}
		if _, err = r.quietly(ctx, w, &v, cmp.Or(r.engine(ctx, w), from.Inputs.Engine)); v.Holds || !w.Staged {
			return v.Holds, err
		}
	}
	if w.Staged {
		if from, err = r.Store.NewestStaged(ctx, w.Node, w.Environment); err == nil {
			v := Verdict{From: from}
			_, err = r.quietly(ctx, w, &v, cmp.Or(r.engine(ctx, w), from.Inputs.Engine))
			return v.Holds, err
		}
	}
	if fault.Of(err) == fault.NotFound {
		err = nil
	}
	return false, err
}

// barred says why a catalog must not be used again whatever its inputs are.
func (r *Reuser) barred(ctx context.Context, from Compilation, version fleet.Digest) (why string, err error) {
	if why := r.aged(from.Inputs); why != "" {
		return why, nil
	}
	stops, err := r.Store.ReuseStops(ctx, from.Node, from.Environment)
	return stopped(stops, from, version), err
}

// aged says why a catalog is too old.
func (r *Reuser) aged(in *InputSet) (why string) {
	if ttl, age := r.VolatileTTL(), time.Since(in.At); len(in.Volatile) > 0 && age >= ttl {
		return fmt.Sprintf("it is volatile (%s) and older than %s", in.Volatile[0], ttl)
	}
	return ""
}

func stopped(stops []ReuseStop, from Compilation, version fleet.Digest) (why string) {
	for _, stop := range stops {
		if stop.Version == from.Version || stop.Version == version {
			return fmt.Sprintf("a reused catalog of version %s was wrong", stop.Version.Short())
		}
	}
	return ""
}

// restate makes a row of w's version of a catalog that stands. A staged one becomes its
// node's newest.
func (r *Reuser) restate(ctx context.Context, w Wish, v Verdict) (Compilation, error) {
	now := time.Now()
	made, err := r.Store.Restate(ctx, v.From.ID, Compilation{
		Node: w.Node, Environment: w.Environment, Version: w.Version, FactsSeq: v.seq, Transaction: w.Transaction, Trusted: w.Trusted,
		Priority: w.Priority, State: Done, WantedAt: now, FinishedAt: now, Catalog: v.From.Catalog, UUID: uuid.NewString(),
	})
	if err != nil || !v.From.Staged || r.Results == nil {
		return made, err
	}
	document, err := r.Documents.Document(ctx, made.Catalog)
	if err != nil {
		return made, err
	}
	return made, r.Results.SaveCatalog(ctx, Result{Compilation: made, Document: document, Collected: v.From.Inputs.Collected})
}

// sample has one in so many reuses compiled and compared, when nothing else is to be
// done.
func (r *Reuser) sample(ctx context.Context, w Wish, c Compilation) {
	n := r.CheckOneIn()
	if n <= 0 || rand.IntN(n) != 0 { //nolint:gosec // only picks samples
		return
	}
	_, err := r.Queue.Want(ctx, Want{
		Node: c.Node, Environment: c.Environment, Version: c.Version, FactsSeq: c.FactsSeq, Trusted: w.Trusted,
		Priority: Background, At: time.Now(), Checks: c.ID,
	})
	if err != nil {
		r.Log.WarnContext(ctx, "a reused catalog is not checked", "node", c.Node, "err", err)
		return
	}
	r.Wake()
}

// ReuserStats counts since the start.
type ReuserStats struct {
	Reused   uint64 // answers without a compilation
	Restated uint64 // of them, for another version than was compiled
	Checked  uint64 // compared with a fresh compilation
	Wrong    uint64 // of them, different: each is a fault of Tutti or of the code
}

// Stats may be called at any time.
func (r *Reuser) Stats() ReuserStats {
	if r == nil {
		return ReuserStats{}
	}
	n := &r.count
	return ReuserStats{Reused: n.reused.Load(), Restated: n.restated.Load(), Checked: n.checked.Load(), Wrong: n.wrong.Load()}
}
