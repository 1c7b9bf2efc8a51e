package preview

import (
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Queue is what previews ask of compilations.
type Queue interface {
	compile.Readings
	// Holdings is what is known of nodes; at most inventory.MaxNamed.
	Holdings(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Holding, error)
	WantAll(ctx context.Context, wants []compile.Want) ([]compile.Compilation, error)
	// Compilations is those of the rows that are there.
	Compilations(ctx context.Context, ids []int64) ([]compile.Compilation, error)
	// Logs is compile.Board's.
	Logs(ctx context.Context, ids []int64) (map[int64][]compile.Log, error)
}

// Compilations is Compiler, Bases and Logs over the queue of compilations.
type Compilations struct {
	Queue  Queue
	Reuser *compile.Reuser
	Reuse  func() bool // whether a stored catalog may stand
	Wake   func()      // a dispatcher
}

// askAtOnce is how many nodes are judged, or wanted, together.
const askAtOnce = 500

// Ask implements Compiler. A catalog that stands for the version costs no compilation, and no row. What reads files that
// differ is wanted before anything else is judged.
func (q Compilations) Ask(ctx context.Context, of Preview, nodes []fleet.Certname, tell func([]Answer) error) error {
	var survey *compile.Survey
	if q.Reuse() {
		survey = q.Reuser.Survey(q.Queue, of.Environment, of.Version)
	}
	var others []fleet.Certname
	for chunk := range slices.Chunk(nodes, askAtOnce) {
		touched := chunk
		if survey != nil {
			var stand []fleet.Certname
			var err error
			if touched, stand, err = survey.Touched(ctx, chunk); err != nil {
				return err
			}
			others = append(others, stand...)
		}
		if err := q.tellWanted(ctx, of, touched, tell); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(others, askAtOnce) {
		verdicts, err := survey.Judge(ctx, chunk)
		if err != nil {
			return err
		}
		if err := q.tellJudged(ctx, of, chunk, verdicts, tell); err != nil {
			return err
		}
	}
	return nil
}

// tellJudged tells of catalogs that stand, and has the others compiled. Where the author does not see all nodes, a staged catalog
// whose code asked the inventory stands for nothing: it may say more than the node has, and than the author may know.
func (q Compilations) tellJudged(
	ctx context.Context, of Preview, nodes []fleet.Certname, verdicts []compile.Verdict, tell func([]Answer) error,
) error {
	var stand []Answer
	var others []fleet.Certname
	for i, v := range verdicts {
		if !v.Holds || of.Reach != "" && v.From.Staged && len(v.From.Inputs.Asked) > 0 {
			others = append(others, nodes[i])
			continue
		}
		stand = append(stand, Answer{
			Node: nodes[i], Compilation: v.From.ID, Stands: Compiled, Catalog: v.From.Catalog, Reused: true, Volatile: firstOf(v.From.Inputs.Volatile),
		})
	}
	if err := q.tellWanted(ctx, of, others, tell); err != nil {
		return err
	}
	return tell(stand)
}

// tellWanted has catalogs of nodes compiled that have facts.
func (q Compilations) tellWanted(ctx context.Context, of Preview, nodes []fleet.Certname, tell func([]Answer) error) error {
	if len(nodes) == 0 {
		return nil
	}
	holdings, err := q.Queue.Holdings(ctx, nodes)
	if err != nil {
		return err
	}
	var answers []Answer
	var wants []compile.Want
	for _, node := range nodes {
		seq := holdings[node].FactsSeq
		if seq == 0 {
			answers = append(answers, Answer{Node: node, Stands: Impossible, Failure: Failure{Message: "no facts are known of " + string(node)}})
			continue
		}
		wants = append(wants, compile.Want{
			Node: node, Environment: of.Environment, Version: of.Version, FactsSeq: seq, Priority: compile.Previewing, At: time.Now(), Staged: true, Reach: of.Reach,
		})
	}
	rows, err := q.Queue.WantAll(ctx, wants)
	if err != nil {
		return err
	}
	for _, c := range rows {
		answers = append(answers, Answer{Node: c.Node, Compilation: c.ID})
	}
	q.Wake()
	return tell(answers)
}

// Ended implements Compiler.
func (q Compilations) Ended(ctx context.Context, compilations []int64) ([]Answer, error) {
	rows, err := q.Queue.Compilations(ctx, compilations)
	if err != nil {
		return nil, err
	}
	there := make(map[int64]bool, len(rows))
	var ended []Answer
	for _, c := range rows {
		there[c.ID] = true
		a := Answer{Node: c.Node, Compilation: c.ID}
		switch c.State {
		case compile.Done:
			a.Stands, a.Catalog = Compiled, c.Catalog
			if c.Inputs != nil {
				a.Volatile = firstOf(c.Inputs.Volatile)
			}
		case compile.Failed:
			a.Stands, a.Failure = Broken, Failure{Message: c.Err.Told(), File: c.Err.File, Line: c.Err.Line}
		case compile.Wanted, compile.Leased:
			continue
		}
		ended = append(ended, a)
	}
	for _, id := range compilations {
		if !there[id] {
			ended = append(ended, Answer{Compilation: id, Stands: Gone})
		}
	}
	return ended, nil
}

func firstOf(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0]
}

// Logs implements Logs.
func (q Compilations) Logs(ctx context.Context, compilations []int64) (map[int64][]compile.Log, error) {
	return q.Queue.Logs(ctx, compilations)
}

// Standing implements Logs.
func (q Compilations) Standing(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]Origin, error) {
	candidates, err := q.Reuser.Store.Candidates(ctx, env, nodes)
	if err != nil {
		return nil, err
	}
	standing := make(map[fleet.Certname][]Origin, len(candidates))
	for node, list := range candidates {
		for _, c := range list {
			standing[node] = append(standing[node], Origin{Compilation: c.ID, Compiled: c.Read, Staged: c.Staged})
		}
	}
	return standing, nil
}

// Bases implements Bases.
func (q Compilations) Bases(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]Base, error) {
	bases := make(map[fleet.Certname]Base, len(nodes))
	for chunk := range slices.Chunk(nodes, inventory.MaxNamed) {
		holdings, err := q.Queue.Holdings(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for node, h := range holdings {
			if h.Catalog != "" {
				bases[node] = Base{Catalog: h.Catalog, Environment: h.Environment, Version: h.Version}
			}
		}
	}
	return bases, nil
}
