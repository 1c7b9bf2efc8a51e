package checkin

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// Request is what a node says when it asks for its catalog.
type Request struct {
	Node        fleet.Certname
	Certificate *x509.Certificate // the node's own; nil when an administrator asks for the node
	Requested   fleet.Environment // the environment that it names
	Facts       *facts.Told       // nil when none came
	Transaction string            // transaction_uuid; empty when the agent sent none
	JobID       string            // empty for a run that no job started
	// CheckEnvironment is set when the agent would rather have an empty catalog than one of another environment.
	CheckEnvironment bool
	// Static is set when the agent takes file metadata inside the catalog, with one of ChecksumTypes, best first.
	Static        bool
	ChecksumTypes []string
	Packed        bool // the agent takes gzip
	Stays         bool // the agent cannot be told to come back: it stays on the line until its catalog is there
}

// Visit is a request and everything that was found out for it, once.
type Visit struct {
	Request
	Place
	Trusted  json.RawMessage // the node's $trusted, one JSON object
	FactsSeq int64           // of the facts that came with the request; 0: none came
	Kept     bool            // the records could not be asked: only a catalog that is kept elsewhere can be the answer; see package near
}

// Inlined says whether file metadata is in the catalog: the agent takes it there.
func (v Visit) Inlined() bool {
	return v.Static && (len(v.ChecksumTypes) == 0 || slices.Contains(v.ChecksumTypes, InlinedChecksum))
}

// Answer is a catalog as it goes to the node.
type Answer struct {
	Document    json.RawMessage // the whole catalog in Puppet's wire format
	Packed      bool            // Document is in gzip's format; only for who takes it
	Rich        bool            // the document holds values that plain JSON has no types for
	Environment fleet.Environment
	CodeID      string
}

// Code is files that a node is held at.
type Code struct {
	Environment fleet.Environment
	Version     fleet.Digest
}

// Facts keeps facts; an inventory.FactStore is one.
type Facts interface {
	SaveFacts(ctx context.Context, f inventory.FactSet) (stored inventory.FactSet, changed []string, err error)
}

// Delivery says what nodes may have; *deliver.Service is one.
type Delivery interface {
	Standings
	// PointerOf is what a node in released mode may have now; NotFound.
	PointerOf(ctx context.Context, standing deliver.Standing) (deliver.Pointer, error)
	// OnHold is the catalog of a node that the brake holds, and the one that it keeps.
	OnHold(ctx context.Context, node fleet.Certname) (l deliver.Loss, ok bool, err error)
	// GivenAgain notes that a node is given a catalog: one that was held and is right again is held no longer.
	GivenAgain(ctx context.Context, node fleet.Certname, catalog fleet.Digest) error
}

// Catalogs finds the catalog that stands, or has it compiled; *compile.Service is one.
type Catalogs interface {
	Catalog(ctx context.Context, a compile.Ask) (compile.Answer, error)
}

// Documents reads stored catalogs.
type Documents interface {
	Document(ctx context.Context, d fleet.Digest) ([]byte, error)
}

// Packs reads stored catalogs rendered and packed; *compile.Packs is one.
type Packs interface {
	Packed(ctx context.Context, digest fleet.Digest, s catalog.Stamp) (packed []byte, rich bool, err error)
}

// Places finds out where a node gets its code from; Environments is one.
type Places interface {
	// OrOwn is for a request: see Environments.
	OrOwn(ctx context.Context, node fleet.Certname, requested fleet.Environment) (Place, error)
}

// Service answers nodes that ask for their catalogs.
type Service struct {
	Trust        Trust
	Environments Places
	Facts        Facts
	Delivery     Delivery
	Catalogs     Catalogs
	Documents    Documents
	Packs        Packs
	Server       string // the name of this server, which facts are kept with
	Now          func() time.Time
}

// ErrNoEnvironment says that there is no environment that a node could get.
var ErrNoEnvironment = errors.New("no environment")

// Resolve finds out everything about a request. The facts are stored first: they are worth having even if no catalog
// comes of it. Naming an environment that does not exist is not held against a node: its own one is used.
func (s Service) Resolve(ctx context.Context, r Request) (Visit, error) {
	v := Visit{Request: r}
	var unknown, err error
	v.Trusted, unknown = s.Trust.Trusted(ctx, r.Node, r.Certificate)
	if r.Facts != nil {
		if v.FactsSeq, err = s.save(ctx, r, v.Trusted); err != nil {
			return v, err
		}
		v.Facts = nil // they are stored; thousands may wait here
	}
	if unknown != nil {
		return v, unknown
	}
	v.Place, err = s.Environments.OrOwn(ctx, r.Node, r.Requested)
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.NotFound, ErrNoEnvironment, "%s", fault.Detail(err))
	}
	return v, err
}

// SaveFacts stores the facts of a request that asks for nothing.
func (s Service) SaveFacts(ctx context.Context, r Request) error {
	trusted, err := s.Trust.Trusted(ctx, r.Node, r.Certificate)
	if err != nil {
		return err
	}
	_, err = s.save(ctx, r, trusted)
	return err
}

// save stores facts, and trusted data with them if it is known, as Puppet Servers with PuppetDB do.
func (s Service) save(ctx context.Context, r Request, trusted json.RawMessage) (seq int64, err error) {
	set := inventory.FactsOf(*r.Facts)
	if trusted != nil {
		if set, err = set.WithTrusted(trusted); err != nil {
			return 0, err
		}
	}
	set.Environment, set.ReceivedAt, set.Producer = r.Requested, s.Now(), s.Server
	stored, _, err := s.Facts.SaveFacts(ctx, set)
	return stored.Seq, err
}

// Elsewhere says whether an agent is only to be told that its environment is another one. A node that keeps a catalog
// of the environment that it names, because the newest one is held, is given that.
func (s Service) Elsewhere(ctx context.Context, v Visit) (bool, error) {
	if !v.CheckEnvironment || v.Environment == v.Requested {
		return false, nil
	}
	if v.Released {
		return true, nil
	}
	loss, ok, err := s.Delivery.OnHold(ctx, v.Node)
	return !ok || loss.Kept.Environment != v.Requested, err
}

// longPatience is how long an agent is kept on the line that cannot be told to
// come back. Agents hang up after ten minutes (http_read_timeout).
const longPatience = 9 * time.Minute

// InlinedChecksum is the one that static catalogs carry, whoever asked first.
const InlinedChecksum = "sha256"

// Catalog answers a visit. It may wait for a compilation; see compile.Service.
func (s Service) Catalog(ctx context.Context, v Visit) (Answer, error) {
	static := v.Inlined()
	if v.Released {
		return s.released(ctx, v, catalog.Stamp{Static: static})
	}
	question := compile.Ask{
		Node: v.Node, Environment: v.Environment, Version: v.Version, FactsSeq: v.FactsSeq, Transaction: v.Transaction, Trusted: v.Trusted,
		Static: static, Packed: v.Packed,
	}
	if v.Stays {
		question.Patience = longPatience
	}
	found, err := s.Catalogs.Catalog(ctx, question)
	if err != nil {
		return Answer{}, err
	}
	env := v.Environment
	if found.Held {
		env = found.Compilation.Environment
	} else if err := s.Delivery.GivenAgain(ctx, v.Node, found.Compilation.Catalog); err != nil {
		return Answer{}, err
	}
	return Answer{Document: found.Catalog, Packed: found.Packed, Rich: found.Rich, Environment: env, CodeID: string(found.Compilation.Version)}, nil
}

// released answers with what was released to a node. Nothing is compiled. An agent that is told no goes on with the
// catalog that it has kept.
func (s Service) released(ctx context.Context, v Visit, stamp catalog.Stamp) (Answer, error) {
	pointer, err := s.Delivery.PointerOf(ctx, v.Standing)
	if fault.Is(err, fault.NotFound) {
		err = fault.Wrap(fault.Conflict, err, "%s", fault.Detail(err)) // the environment is there
	}
	if err != nil {
		return Answer{}, err
	}
	stamp.Version, stamp.UUID = pointer.Version, pointer.UUID
	answer := Answer{Packed: v.Packed, Environment: pointer.Environment, CodeID: string(pointer.Version)}
	if v.Packed {
		answer.Document, answer.Rich, err = s.Packs.Packed(ctx, pointer.Catalog, stamp)
	} else {
		answer.Document, answer.Rich, err = s.rendered(ctx, pointer.Catalog, stamp)
	}
	if err != nil {
		return Answer{}, fault.Wrap(fault.Internal, err, "generation %d of %s cannot be read", pointer.Generation, v.Node)
	}
	return answer, nil
}

func (s Service) rendered(ctx context.Context, digest fleet.Digest, stamp catalog.Stamp) (wire []byte, rich bool, err error) {
	document, err := s.Documents.Document(ctx, digest)
	if err != nil {
		return nil, false, err
	}
	wire, err = catalog.Render(document, stamp)
	return wire, catalog.Rich(wire), err
}

// HeldAt says which files a node is given, whatever is deployed: those that its catalog was made of. ok is false for a
// node that is given the current ones. A node whose newest catalog is held is given the files of the one that it keeps.
func (s Service) HeldAt(ctx context.Context, node fleet.Certname) (c Code, ok bool, err error) {
	standing, released, err := s.Delivery.Held(ctx, node)
	if err != nil || released && standing.Head == nil {
		return c, false, err
	}
	if released {
		return Code{standing.Head.Environment, standing.Head.Version}, true, nil
	}
	loss, ok, err := s.Delivery.OnHold(ctx, node)
	return Code{loss.Kept.Environment, loss.Kept.Version}, ok && err == nil, err
}
