package codecheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Input is files for a parser.
type Input struct {
	Environment fleet.Environment
	Version     fleet.Digest

	ModulePath []string
	Manifest   string // where the code begins; empty: nobody knows
	Files      []code.Source
	Open       func(ctx context.Context, f code.Source) ([]byte, error)
}

// Parser reads files as Puppet does. It runs none of what it reads.
type Parser interface {
	// Parse tells what it finds in files, of each its mistakes, in any order, and returns when all are read.
	Parse(ctx context.Context, in Input, tell func(Finding)) error
}

// Fleet is what is known of nodes. Whoever implements compile.Wants and the inventory implements it, too.
type Fleet interface {
	// Standings is compile.Wants'.
	Standings(ctx context.Context, env fleet.Environment) ([]compile.Standing, error)
	// Broken is compile.Breakages'.
	Broken(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]compile.Compilation, error)
	// ClassesOf names the classes of the nodes' newest catalogs: nodes with the same classes have the same name. Nodes
	// without a catalog are left out. There are at most inventory.MaxNamed nodes.
	ClassesOf(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]fleet.Digest, error)
	// Candidates is compile.Reusables'.
	Candidates(ctx context.Context, env fleet.Environment, nodes []fleet.Certname) (map[fleet.Certname][]compile.Candidate, error)
	// Logs is compile.Board's.
	Logs(ctx context.Context, ids []int64) (map[int64][]compile.Log, error)
}

// Survey is what catalogs read of what a version changes: compile.Survey.
type Survey interface {
	Readers(ctx context.Context, nodes []fleet.Certname, all bool) ([]compile.Reader, error)
}

// Orders makes orders: compile.Orders.
type Orders interface {
	Build(ctx context.Context, c compile.Compilation) (compile.Order, int64, error)
}

// Code is versions and what is in them: code.Library.
type Code interface {
	Tree(ctx context.Context, env fleet.Environment, id code.VersionID) (*code.Tree, error)
	Sources(ctx context.Context, t *code.Tree, toJSON func([]byte) ([]byte, error)) ([]code.Source, error)
	StartManifest(ctx context.Context, t *code.Tree) (string, error)
}

// Versions is what environments were deployed with: code.Store.
type Versions interface {
	Versions(ctx context.Context, env fleet.Environment, limit int) ([]code.Version, error)
}

// Config is a server's settings. Each is asked for at every check.
type Config struct {
	Nodes       func() int           // most nodes to compile for; 0: none
	Reuses      func() bool          // whether catalogs are used again; otherwise a version may change all
	VolatileTTL func() time.Duration // how long catalogs that read the world outside are used again; 0: they are not
}

// Parts is what a Service works with.
type Parts struct {
	Code     Code
	Open     func(ctx context.Context, d fleet.Digest) ([]byte, error)
	ToJSON   func(yaml []byte) ([]byte, error)
	Versions Versions
	Store    Store
	Parser   Parser
	Compiler compile.Compiler
	Orders   Orders
	Fleet    Fleet
	// Survey begins one for a version of an environment. It belongs to one goroutine.
	Survey func(env fleet.Environment, version fleet.Digest) Survey
	// Supplied finds what keeps nodes from using modules of actions that a version has.
	Supplied func(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]Finding, error)
	Log      *slog.Logger
}

// Service checks versions.
type Service struct {
	Parts
	cfg Config
}

// New returns a service.
func New(parts Parts, cfg Config) *Service { return &Service{parts, cfg} }

// Check reads and compiles what a stored version changes. parseOnly leaves the compiling out.
func (s *Service) Check(ctx context.Context, env fleet.Environment, version fleet.Digest, parseOnly bool) (Report, error) {
	began := time.Now()
	r := Report{Environment: env, Version: version, At: began.UTC().Truncate(time.Second)}
	base, err := s.base(ctx, env)
	if err != nil {
		return r, err
	}
	r.Base = base.Version
	changed, err := s.parse(ctx, &r, base)
	if err != nil {
		return r, err
	}
	supplied, err := s.Supplied(ctx, env, version)
	if err != nil {
		return r, fmt.Errorf("check the modules of actions: %w", err)
	}
	r.Findings = append(r.Findings, supplied...)
	switch r.Unread = r.Count(Mistake) > 0; {
	case r.Unread || parseOnly:
		r.Unread = r.Unread && !parseOnly
	default:
		err = s.compile(ctx, &r, base, changed)
	}
	if !parseOnly && r.Base == version {
		r.remain(base)
	}
	tidy(&r)
	r.Took = time.Since(began)
	return r, err
}

// Mode says what a deploy asks for.
type Mode string

// The modes.
const (
	Checked   Mode = ""      // a version with mistakes is refused
	Forced    Mode = "force" // it is deployed, and its mistakes are said
	Unchecked Mode = "off"
)

// ParseMode reads a mode; Invalid for what is none.
func ParseMode(text string) (Mode, error) {
	switch m := Mode(text); m {
	case Checked, Forced, Unchecked:
		return m, nil
	}
	return "", fault.New(fault.Invalid, "field check: %.40q is none of force and off; without it code with mistakes is refused", text)
}

// Admit checks a version that is about to be deployed. A Conflict that wraps Refused is for one with mistakes, unless it is forced.
func (s *Service) Admit(ctx context.Context, env fleet.Environment, version fleet.Digest, mode Mode) (*Report, error) {
	if mode == Unchecked {
		return nil, nil //nolint:nilnil // nothing was asked, nothing was found
	}
	r, err := s.Check(ctx, env, version, false)
	if err != nil {
		return nil, err
	}
	if mistakes := r.Count(Mistake); mistakes > 0 && mode != Forced {
		refused := &Refused{r}
		return nil, fault.Wrap(fault.Conflict, refused, "%s; nothing was deployed: mend it, or force it", refused)
	}
	r.Forced = r.Count(Mistake) > 0
	return &r, nil
}

// recent is how many versions are looked through for one that was checked.
const recent = 50

// base is the report of the version of an environment that was checked last, one without a version if none was.
func (s *Service) base(ctx context.Context, env fleet.Environment) (Report, error) {
	versions, err := s.Versions.Versions(ctx, env, recent)
	if err != nil {
		return Report{}, err
	}
	for _, v := range versions {
		r, err := s.Store.Check(ctx, env, v.ID)
		if err == nil || fault.Of(err) != fault.NotFound {
			return r, err
		}
	}
	return Report{}, nil
}

// parse reads the files that differ from the base, and those in which the base has mistakes. It returns those of them that differ; none where
// there is nothing to compare them with.
func (s *Service) parse(ctx context.Context, r *Report, base Report) (changed []code.Source, err error) {
	tree, err := s.Code.Tree(ctx, r.Environment, r.Version)
	if err != nil {
		return nil, err
	}
	files, err := s.Code.Sources(ctx, tree, s.ToJSON)
	if err != nil {
		return nil, fmt.Errorf("list the files of the version: %w", err)
	}
	known, err := s.known(ctx, r, base, tree.Manifest().Engine)
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f code.Source) bool { return known[f] && f.Kind != code.ConfSource })
	r.Files = len(files)
	if len(files) == 0 {
		return nil, nil
	}
	start, err := s.Code.StartManifest(ctx, tree)
	if err != nil {
		return nil, err
	}
	byPath := make(map[string]code.Source, len(files))
	for _, f := range files {
		byPath[f.Path] = f
	}
	in := Input{
		Environment: r.Environment, Version: r.Version,
		ModulePath: tree.Manifest().ModulePath, Manifest: start, Files: files,
		Open: func(ctx context.Context, f code.Source) ([]byte, error) { return s.Open(ctx, f.Digest) },
	}
	if known != nil {
		changed = files
	}
	return changed, s.Parser.Parse(ctx, in, func(f Finding) {
		if f, said := s.judged(ctx, f, byPath[f.File]); said {
			r.Findings = append(r.Findings, f)
		}
	})
}

// known is the files that the same engine's parsers read for the base, and that have no mistake there.
func (s *Service) known(ctx context.Context, r *Report, base Report, engine string) (map[code.Source]bool, error) {
	if base.Version == "" {
		return nil, nil
	}
	tree, err := s.Code.Tree(ctx, base.Environment, base.Version)
	if err == nil {
		if tree.Manifest().Engine != engine {
			return nil, nil // another Puppet's parsers may say otherwise
		}
		var files []code.Source
		if files, err = s.Code.Sources(ctx, tree, s.ToJSON); err == nil {
			known := make(map[code.Source]bool, len(files))
			for _, f := range files {
				known[f] = true
			}
			for f := range known {
				if slices.ContainsFunc(base.Findings, func(found Finding) bool { return found.Level == Mistake && found.File == f.Path }) {
					delete(known, f)
				}
			}
			return known, nil
		}
	}
	if fault.Of(err) != fault.NotFound {
		return nil, err
	}
	r.Base = "" // it is not kept any more
	return nil, nil
}

// judged is a parser's finding as it counts; false: it says nothing here.
func (s *Service) judged(ctx context.Context, f Finding, of code.Source) (Finding, bool) {
	switch {
	case f.Level == Outside:
		ttl := s.cfg.VolatileTTL()
		if ttl <= 0 {
			return f, false
		}
		f.Level, f.Message = Note, fmt.Sprintf("%s: a catalog that did so is used again for up to %s (volatile_ttl)", f.Message, fault.Duration(ttl))
	case f.Level == Mistake && of.Loose:
		f.Level = Warning
	}
	if f.Line == 0 && of.Kind == code.JSONSource && f.Level != Note {
		f.Line = s.jsonLine(ctx, of)
	}
	return f, true
}

// jsonLine is the line in which a file stops to be JSON: Ruby does not say it.
func (s *Service) jsonLine(ctx context.Context, f code.Source) int {
	text, err := s.Open(ctx, f.Digest)
	if err != nil {
		return 0
	}
	var value any
	wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &value))
	if !ok {
		return 0
	}
	line := 1
	for _, c := range text[:min(int(max(0, wrong.Offset-1)), len(text))] {
		if c == '\n' {
			line++
		}
	}
	return line
}

// remain adds what an earlier check of the same version said besides mistakes, as this report takes the place of that one: of files, which are
// not read again, and of nodes unless some were compiled for anew.
func (r *Report) remain(of Report) {
	for _, f := range of.Findings {
		same := func(known Finding) bool {
			return known.Level == f.Level && known.File == f.File && known.Line == f.Line && known.Message == f.Message
		}
		ofFile := f.File != "" && len(f.Nodes) == 0
		if f.Level != Mistake && (ofFile || r.Compiled+r.More == 0) && !slices.ContainsFunc(r.Findings, same) {
			f.New = false
			r.Findings = append(r.Findings, f)
		}
	}
}

// maxFindings bounds a report.
const maxFindings = 1000

// tidy puts findings in order: mistakes first, of warnings those that are new, by place, each once.
func tidy(r *Report) {
	rank := func(f Finding) int {
		switch {
		case f.Level == Mistake:
			return 0
		case f.New:
			return 1
		case f.Level == Warning:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Message, b.Message))
	})
	r.Findings = slices.CompactFunc(r.Findings, func(a, b Finding) bool {
		return a.Level == b.Level && a.File == b.File && a.Line == b.Line && a.Message == b.Message
	})
	r.Cut = max(0, len(r.Findings)-maxFindings)
	r.Findings = r.Findings[:len(r.Findings)-r.Cut]
}
