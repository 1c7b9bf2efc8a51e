package codecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// maxTrials is how long compiling may take, for all nodes of a check together.
const maxTrials = 10 * time.Minute

// trialsAtOnce is how many nodes are compiled for at the same time; the compiler has a limit of its own.
const trialsAtOnce = 8

// namedFiles is how many files that no checked node reads are named.
const namedFiles = 10

// unread tells which changed files none of the trials read: first those that catalogs of other nodes read, for which there was no room.
// changed is the files that Puppet reads and that differ from those that were checked before; of them nothing is said where one of the
// trials failed, as nobody knows what it would have read.
func unread(left []string, changed []code.Source, trials []trial) (findings []Finding) {
	seen := func(file string) bool {
		return slices.ContainsFunc(trials, func(t trial) bool { return t.done && t.saw(file) })
	}
	known := true
	for _, t := range trials {
		if known = known && t.reads != nil; !t.done {
			left = slices.Concat(left, t.files())
		}
	}
	slices.Sort(left)
	left = slices.DeleteFunc(slices.Compact(left), seen)
	told := make(map[string]bool, len(left))
	for _, file := range left {
		told[file] = true
	}
	var others []string
	for _, f := range changed {
		if known && !f.Loose && f.Compiled() && !told[f.Path] && !seen(f.Path) {
			others = append(others, f.Path)
		}
	}
	if len(left) > 0 {
		findings = append(findings, Finding{Level: Warning, Message: unreadText(left, ", but by catalogs of others (deploy_check_nodes)")})
	}
	if len(others) > 0 {
		findings = append(findings, Finding{Level: Note, Message: unreadText(others, "")})
	}
	return findings
}

func unreadText(files []string, besides string) string {
	text := fmt.Sprintf("%d changed files are read by no checked node", len(files))
	if len(files) == 1 {
		text = "1 changed file is read by no checked node"
	}
	text += besides + ": " + strings.Join(files[:min(len(files), namedFiles)], ", ")
	if more := len(files) - namedFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// compile compiles for one node of each set of classes, and for others until each changed file is read by one of them. Where it may compile
// for none, it says how many sets it left out all the same.
func (s *Service) compile(ctx context.Context, r *Report, base Report, changed []code.Source) error {
	kinds, err := s.kinds(ctx, r.Environment, r.Version)
	if err != nil {
		return err
	}
	chosen, sets, left := choose(kinds, s.cfg.Nodes())
	r.Sets = sets
	timed, cancel := context.WithTimeout(ctx, maxTrials)
	defer cancel()
	trials := make([]trial, len(chosen))
	group, inner := errgroup.WithContext(timed)
	group.SetLimit(trialsAtOnce)
	for i, one := range chosen {
		group.Go(func() (err error) {
			trials[i], err = s.try(inner, r, one)
			return err
		})
	}
	switch err := group.Wait(); {
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		r.Findings = append(r.Findings, Finding{
			Level: Warning, Message: fmt.Sprintf("not all of %s could be compiled for within %s", fault.Count(len(chosen), "node"), fault.Duration(maxTrials)),
		})
	case err != nil:
		return err
	}
	if len(trials) > 0 {
		r.Findings = append(r.Findings, unread(left, changed, trials)...)
	}
	return s.conclude(ctx, r, base, trials)
}

// trial is what came of compiling for a node.
type trial struct {
	set
	failed *compile.Error
	reads  *compile.Reads // nil: it is not known
	logs   []compile.Log
	done   bool
}

// saw says whether the compilation read a file. Of one that failed, that is what the node's last catalog read.
func (t *trial) saw(file string) bool {
	if t.reads == nil {
		_, found := slices.BinarySearch(t.files(), file)
		return found
	}
	_, found := slices.BinarySearch(t.reads.Sources.Files, file)
	return found || slices.ContainsFunc(t.reads.Sources.Trees, func(tree string) bool { return file == tree || strings.HasPrefix(file, tree+"/") })
}

func (s *Service) try(ctx context.Context, r *Report, chosen set) (trial, error) {
	t := trial{set: chosen}
	order, _, err := s.Orders.Build(ctx, compile.Compilation{Node: chosen.node, Environment: r.Environment, Version: r.Version})
	var out compile.Outcome
	if err == nil {
		out, err = s.Compiler.Compile(ctx, order)
		err = order.Blamed(err)
	}
	if failed, ok := errors.AsType[*compile.Error](err); ok {
		t.failed, t.logs, t.done = failed, failed.Logs, true
		return t, nil
	}
	if err != nil {
		detail := cmp.Or(fault.Detail(err), "the log says why")
		return t, fault.Wrap(fault.Unavailable, err, "the catalog of %s could not be compiled: %s", chosen.node, detail)
	}
	t.reads, t.logs, t.done = out.Reads, out.Logs, true
	return t, nil
}

// kinds takes the nodes apart that a version may change: by their classes, and by what their catalogs read of what differs. Nodes of which
// no catalog is known are kinds of their own.
func (s *Service) kinds(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]kind, error) {
	standings, err := s.Fleet.Standings(ctx, env)
	if err != nil {
		return nil, err
	}
	var nodes []fleet.Certname
	for _, st := range standings {
		if st.FactsSeq != 0 {
			nodes = append(nodes, st.Node)
		}
	}
	type key struct {
		classes fleet.Digest
		reads   *compile.Reading
	}
	known := map[key]int{}
	var kinds []kind
	survey := s.Survey(env, version)
	for chunk := range slices.Chunk(nodes, inventory.MaxNamed) {
		readers, err := survey.Readers(ctx, chunk, !s.cfg.Reuses())
		if err != nil {
			return nil, err
		}
		touched := make([]fleet.Certname, len(readers))
		for i, reader := range readers {
			touched[i] = reader.Node
		}
		classes, err := s.Fleet.ClassesOf(ctx, touched)
		if err != nil {
			return nil, err
		}
		for _, reader := range readers {
			k := key{classes[reader.Node], reader.Read}
			if at, there := known[k]; there && k.classes != "" {
				kinds[at].nodes++
				continue
			}
			known[k] = len(kinds)
			kinds = append(kinds, kind{node: reader.Node, nodes: 1, classes: k.classes, reads: reader.Read})
		}
	}
	return kinds, nil
}

// conclude makes findings of trials.
func (s *Service) conclude(ctx context.Context, r *Report, base Report, trials []trial) error {
	var failed []fleet.Certname
	for _, t := range trials {
		switch {
		case t.done && t.more:
			r.More++
		case t.done:
			r.Compiled++
		}
		if t.failed != nil {
			failed = append(failed, t.node)
		}
	}
	before, err := s.broken(ctx, failed)
	if err != nil {
		return err
	}
	if err := s.warned(ctx, r, trials); err != nil {
		return err
	}
	notes := map[string]bool{}
	for _, t := range trials {
		if t.failed != nil {
			r.add(t, s.failure(t, before[t.node].Err, base))
		}
		for _, what := range t.volatile() {
			if ttl := s.cfg.VolatileTTL(); ttl > 0 && !notes[what] && !r.says(what) {
				notes[what] = true
				r.add(t, volatileNote(what, ttl))
			}
		}
	}
	return nil
}

// volatile is what of a compilation could not be followed.
func (t *trial) volatile() []string {
	if t.reads == nil {
		return nil
	}
	return t.reads.Volatile
}

// warned adds what the compiler warns of, each once for all nodes, and marks what it wrote for none of the catalogs that these nodes have.
func (s *Service) warned(ctx context.Context, r *Report, trials []trial) error {
	nodes := make([]fleet.Certname, len(trials))
	for i, t := range trials {
		nodes[i] = t.node
	}
	if !slices.ContainsFunc(trials, func(t trial) bool { return len(compile.Warnings(t.logs)) > 0 }) {
		return nil
	}
	candidates, err := s.Fleet.Candidates(ctx, r.Environment, nodes)
	if err != nil {
		return err
	}
	var made []int64
	for _, list := range candidates {
		for _, c := range list {
			if !c.Staged {
				made = append(made, c.Read)
			}
		}
	}
	logs, err := s.Fleet.Logs(ctx, made)
	if err != nil {
		return err
	}
	old := map[compile.Log]bool{}
	for _, list := range logs {
		for _, log := range compile.Warnings(list) {
			old[log] = true
		}
	}
	for _, t := range trials {
		for _, log := range compile.Warnings(t.logs) {
			if t.failed != nil && sameWords(log.Plain(), t.failed.Words()) {
				continue // Puppet logs what ends a compilation, too
			}
			r.warn(t, Finding{Level: Warning, New: !old[log], File: log.File, Line: log.Line, Message: log.Plain()})
		}
	}
	return nil
}

// says says whether the files of a report told of a call already, with its place, of which a compilation only knows the function: generate().
func (r *Report) says(what string) bool {
	call, _, found := strings.Cut(what, "() ")
	return found && slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level == Note && strings.HasPrefix(f.Message, call+"(") })
}

func (s *Service) broken(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Compilation, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	return s.Fleet.Broken(ctx, nodes)
}

// failure is what a catalog that does not compile means.
func (s *Service) failure(t trial, before *compile.Error, base Report) Finding {
	f := Finding{Level: Mistake, File: t.failed.File, Line: t.failed.Line, Column: t.failed.Pos, Message: t.failed.Plain()}
	forced := slices.ContainsFunc(base.Findings, func(known Finding) bool { return known.Level == Mistake && sameWords(known.Message, f.Message) })
	switch {
	case t.failed.Cause == compile.CauseInput: // no fault of the code's
		f.Level = Warning
	case !forced && before != nil && before.File == t.failed.File && sameWords(before.Words(), t.failed.Words()):
		f.Level, f.Message = Warning, f.Message+" (as with the version that it has)"
	}
	return f
}

func sameWords(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}

// volatileNote names what a compilation could not be followed in, and where, if it says so: "runs a program in modules/x/lib/y.rb:3".
func volatileNote(what string, ttl time.Duration) Finding {
	f := Finding{Level: Note, Message: fmt.Sprintf("%s: a catalog that did so is used again for up to %s (volatile_ttl)", what, fault.Duration(ttl))}
	if text, place, found := strings.Cut(what, " in "); found {
		if file, line, found := strings.Cut(place, ":"); found {
			if _, err := fmt.Sscanf(line, "%d", &f.Line); err == nil {
				f.File, f.Message = file, strings.Replace(f.Message, what, text, 1)
			}
		}
	}
	return f
}

// add adds a finding of a node to the same one of others.
func (r *Report) add(t trial, f Finding) {
	r.join(t, f, func(known Finding) bool { return len(known.Nodes) > 0 })
}

// warn adds a warning of a node to the same one of others, or to the one that the parsers gave already.
func (r *Report) warn(t trial, f Finding) { r.join(t, f, func(Finding) bool { return true }) }

func (r *Report) join(t trial, f Finding, fits func(known Finding) bool) {
	at := slices.IndexFunc(r.Findings, func(known Finding) bool {
		return known.Level == f.Level && known.File == f.File && known.Line == f.Line && known.Message == f.Message && fits(known)
	})
	if at < 0 {
		at = len(r.Findings)
		r.Findings = append(r.Findings, f)
	}
	found := &r.Findings[at]
	found.New = found.New || f.New
	found.Alike += t.nodes
	if len(found.Nodes) < maxNamed {
		found.Nodes = append(found.Nodes, t.node)
	}
}

// maxNamed is how many nodes a finding names.
const maxNamed = 5
