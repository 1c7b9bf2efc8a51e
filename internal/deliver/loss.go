package deliver

import (
	"context"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Loss is a catalog that lost resources, as the brake ruled on it.
type Loss struct {
	ID      int64
	Node    fleet.Certname
	Ruling  Ruling  // Hold or Warn
	Catalog Catalog // that lost them
	Kept    Catalog // that its node had, and keeps while the other one is held
	Was     int     // resources of the one before
	Left    int     // resources of this one
	At      time.Time
	Ended   time.Time // zero: it is open. Another catalog was given, or somebody let this one go
	By      string    // who let it go
}

// Told tells people of a loss.
func (l Loss) Told() string {
	what := "lost all of its " + fault.Count(l.Was, "resource")
	if l.Left > 0 {
		what = fmt.Sprintf("lost %d of its %s", l.Was-l.Left, fault.Count(l.Was, "resource"))
	}
	if l.Ruling != Hold {
		return fmt.Sprintf("catalog given with a warning: %s (version %s; before: version %s)", what, l.Catalog.Version.Short(), l.Kept.Version.Short())
	}
	return fmt.Sprintf("catalog held: %s (version %s); it keeps the one of version %s", what, l.Catalog.Version.Short(), l.Kept.Version.Short())
}

// Story tells people of a loss, and what to do.
func (l Loss) Story() string {
	if l.Ruling != Hold {
		return fmt.Sprintf("%s; look: tutti catalog diff %s --with %s", l.Told(), l.Node, l.Kept.Digest)
	}
	return fmt.Sprintf("%s; look: tutti catalog diff %s --with %s; let go: tutti catalog let %s", l.Told(), l.Node, l.Catalog.Digest, l.Node)
}

// LossFilter picks losses. Empty fields pick all.
type LossFilter struct {
	Nodes       []fleet.Certname
	Ruling      Ruling
	Environment fleet.Environment
	Version     fleet.Digest
	Past        bool // also ended ones
}

// Let is somebody's word that a catalog is meant: one for a node, the held one that it has, or all of a version.
type Let struct {
	Node    fleet.Certname
	Version fleet.Digest // one of both is given
	At      time.Time
	By      string
}

// LossStore keeps what the brake ruled, and what people said to it. A node has one open loss at most.
type LossStore interface {
	// Had reads the newest catalog that was compiled here and given to a node, and counts its resources besides stages,
	// classes and exported ones. Zero when it has none.
	Had(ctx context.Context, node fleet.Certname) (c Catalog, resources int, err error)
	// NoteLoss opens a loss, in the place of the one that is open of its node. Conflict, and nothing is stored, unless
	// the node's newest catalog is Kept, by its digest.
	NoteLoss(ctx context.Context, l Loss) error
	// Losses lists losses by node, those of a node newest first. A warning is open while its catalog is the node's newest;
	// a hold until another catalog is made the newest, the node comes into released mode, or somebody lets it go.
	Losses(ctx context.Context, f LossFilter) ([]Loss, error)
	// EndHold ends the hold of a node that is given its Kept catalog again, of code that is current.
	EndHold(ctx context.Context, node fleet.Certname, kept fleet.Digest, now time.Time) error
	// Let keeps l and ends the holds that it is about, and lists their nodes by name. Each of these nodes is looked at
	// again by who compiles ahead. NotFound, and nothing is stored, when nothing of it is held.
	Let(ctx context.Context, l Let) ([]fleet.Certname, error)
	// Confirmed says whether somebody let a catalog go to a node, by itself or with its version.
	Confirmed(ctx context.Context, node fleet.Certname, catalog, version fleet.Digest) (bool, error)
	// PruneLosses forgets losses that ended before a time and counts them.
	PruneLosses(ctx context.Context, before time.Time) (int, error)
}

// Ruled is what the brake said of one catalog.
type Ruled struct {
	Ruling Ruling
	Over   fleet.Digest // the catalog that its node had then; empty: none
}

// Rule says what is done with a catalog that would become its node's newest, and keeps that. left counts its resources;
// it is asked only if that matters. The node must be in live mode.
func (s *Service) Rule(ctx context.Context, node fleet.Certname, c Catalog, left func() (int, error)) (Ruled, error) {
	for range 3 { // another catalog may be given meanwhile
		ruled, err := s.rule(ctx, node, c, left)
		if err == nil || fault.Of(err) != fault.Conflict {
			return ruled, err
		}
	}
	return Ruled{}, fault.Later(time.Second, "the catalog of %s changes all the time", node)
}

func (s *Service) rule(ctx context.Context, node fleet.Certname, c Catalog, left func() (int, error)) (Ruled, error) {
	had, was, err := s.Store.Had(ctx, node)
	limits := s.limits()
	ruled := Ruled{Ruling: Give, Over: had.Digest}
	if err != nil || had.Digest == "" || had.Digest == c.Digest || limits == (Limits{Off, Off}) {
		return ruled, err
	}
	open, err := s.Store.Losses(ctx, LossFilter{Nodes: []fleet.Certname{node}, Ruling: Hold})
	if err != nil {
		return ruled, err
	}
	loss := Loss{Node: node, Catalog: c, Kept: had, Was: was, At: s.Now()}
	known := len(open) > 0 && open[0].Catalog.Digest == c.Digest && open[0].Kept.Digest == had.Digest
	if known {
		loss.Left, loss.At = open[0].Left, open[0].At
	} else if loss.Left, err = left(); err != nil {
		return ruled, err
	}
	ruled.Ruling = Brake(was, loss.Left, limits)
	if ruled.Ruling == Hold {
		let, err := s.Store.Confirmed(ctx, node, c.Digest, c.Version)
		if err != nil {
			return ruled, err
		}
		if let {
			ruled.Ruling = Give
		}
	}
	if ruled.Ruling == Give || known && ruled.Ruling == Hold && open[0].Catalog.Version == c.Version && open[0].Catalog.Environment == c.Environment {
		return ruled, nil
	}
	loss.Ruling = ruled.Ruling
	if err := s.Store.NoteLoss(ctx, loss); err != nil {
		return ruled, err
	}
	s.noted(ctx, loss)
	return ruled, nil
}

// limits are those that are set; without any nothing is held.
func (s *Service) limits() Limits {
	if s.Limits == nil {
		return Limits{Off, Off}
	}
	return s.Limits()
}

// noted tells people of a loss that was not known yet.
func (s *Service) noted(ctx context.Context, l Loss) {
	message := "catalog given that lost resources"
	if l.Ruling == Hold {
		s.forget()
		message = "catalog held: its node keeps the one that it has until somebody lets it go"
	} else {
		s.warned.Add(1)
	}
	s.Log.WarnContext(ctx, message, "node", l.Node, "environment", l.Catalog.Environment, "version", l.Catalog.Version.Short(),
		"catalog", l.Catalog.Digest.Short(), "resources", l.Left, "before", l.Was, "kept", l.Kept.Digest.Short(), "kept_version", l.Kept.Version.Short())
}

// Warned counts the warnings since the start.
func (s *Service) Warned() uint64 { return s.warned.Load() }

// OnHold is the hold of a node in live mode whose newest catalog is kept from it; ok is false for every other node.
// While nothing is held, it costs nothing.
func (s *Service) OnHold(ctx context.Context, node fleet.Certname) (l Loss, ok bool, err error) {
	known, err := s.modes(ctx)
	if err != nil || known.holds == 0 {
		return l, false, err
	}
	open, err := s.Store.Losses(ctx, LossFilter{Nodes: []fleet.Certname{node}, Ruling: Hold})
	if err != nil || len(open) == 0 {
		return l, false, err
	}
	return open[0], true, nil
}

// GivenAgain says that the catalog that a node has is right again: then nothing is held from it.
func (s *Service) GivenAgain(ctx context.Context, node fleet.Certname, catalog fleet.Digest) error {
	l, ok, err := s.OnHold(ctx, node)
	if err != nil || !ok || l.Kept.Digest != catalog {
		return err
	}
	return s.Store.EndHold(ctx, node, catalog, s.Now())
}

// Losses lists losses; see LossStore.
func (s *Service) Losses(ctx context.Context, f LossFilter) ([]Loss, error) {
	return s.Store.Losses(ctx, f)
}

// LetGo lets a held catalog go, or all that is held of a version, and lists whose.
func (s *Service) LetGo(ctx context.Context, l Let) ([]fleet.Certname, error) {
	if (l.Node == "") == (l.Version == "") {
		return nil, fault.New(fault.Invalid, "a held catalog is let go for a node or for a version: name one of both")
	}
	l.At = s.Now()
	nodes, err := s.Store.Let(ctx, l)
	if err != nil {
		return nil, err
	}
	s.forget()
	s.Log.InfoContext(ctx, "held catalogs let go", "node", l.Node, "version", l.Version.Short(), "nodes", len(nodes), "actor", l.By)
	return nodes, nil
}
