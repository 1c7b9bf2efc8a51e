// Package saved keeps questions to the inventory under names, so that people share them instead of writing them anew.
//
// A question is a private one of whoever saved it, or everybody's: then all may read it, and still only its owner may change it. Its
// owner is who saved its newest version. What was said before stays as older versions.
//
// Kinds of fault: Invalid for a name or a question that cannot be, NotFound, Denied for what belongs to somebody else.
package saved

import (
	"context"
	"regexp"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pql"
)

// Definition is what is saved under a name.
type Definition struct {
	Text        string `json:"text"` // PQL, or JSON of the AST language
	Description string `json:"description,omitempty"`
	Private     bool   `json:"private,omitempty"` // only its owner sees it
}

// Query is one version of a question with a name.
type Query struct {
	Name string
	fleet.Stamp
	Definition
}

// Store keeps queries, and every version that they had. Every method is one transaction; all may be called concurrently.
type Store interface {
	// Saved is the newest version of each query, by name, without those that are removed.
	Saved(ctx context.Context) ([]Query, error)
	// SavedHistory is every version of a query, the newest first; NotFound if there never was one.
	SavedHistory(ctx context.Context, name string) ([]Query, error)
	// SaveQuery stores the next version of a query, and gives it its number. One that is Removed keeps what the version before
	// said; NotFound if there is none, or it is removed already.
	SaveQuery(ctx context.Context, q Query) (Query, error)
	// PruneSaved forgets versions from before a time, and counts them. Of each query the newest keep stay, and one at least.
	PruneSaved(ctx context.Context, before time.Time, keep int) (int, error)
}

// Most is how many queries are kept, and maxDescription how long what is said of one may be, in bytes.
const (
	Most           = 2000
	maxDescription = 500
)

var names = regexp.MustCompile(`\A[a-z0-9][a-z0-9._-]{0,63}\z`)

func (q Query) check() error {
	if !names.MatchString(q.Name) {
		return fault.New(
			fault.Invalid, "field name: the name of a query has 1 to 64 of a-z, 0-9, dot, dash and underscore, and begins with a letter or digit; not %.80q", q.Name,
		)
	}
	if len(q.Description) > maxDescription {
		return fault.New(fault.Invalid, "field description: it has %d bytes, at most %d are allowed", len(q.Description), maxDescription)
	}
	read, err := pql.Read(q.Text)
	if err == nil {
		_, err = pql.Check(read)
	}
	return err
}

// Service keeps queries for those who may see them.
type Service struct{ Store Store }

// List is the queries that somebody may see, by name.
func (s Service) List(ctx context.Context, actor fleet.Actor) ([]Query, error) {
	all, err := s.Store.Saved(ctx)
	seen := []Query{}
	for _, q := range all {
		if !q.Private || q.Author == actor.Name {
			seen = append(seen, q)
		}
	}
	return seen, err
}

// Find is one of them; NotFound, also for somebody else's private one.
func (s Service) Find(ctx context.Context, actor fleet.Actor, name string) (Query, error) {
	history, err := s.Store.SavedHistory(ctx, name)
	if err != nil {
		return Query{}, err
	}
	q := history[0]
	if q.Removed || q.Private && q.Author != actor.Name {
		return Query{}, fault.New(fault.NotFound, "there is no saved query %.80q", name)
	}
	return q, nil
}

// Save makes a query, or its next version. Denied if it is somebody else's.
func (s Service) Save(ctx context.Context, actor fleet.Actor, name string, d Definition) (Query, error) {
	q := Query{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now()}, Definition: d}
	if err := q.check(); err != nil {
		return Query{}, err
	}
	all, err := s.Store.Saved(ctx)
	if err != nil {
		return Query{}, err
	}
	there := false
	for _, other := range all {
		if other.Name != name {
			continue
		}
		there = true
		if err := other.belongs(actor); err != nil {
			return Query{}, err
		}
	}
	if !there && len(all) >= Most {
		return Query{}, fault.New(fault.Conflict, "%d queries are saved already, which is the most: remove some", len(all))
	}
	return s.Store.SaveQuery(ctx, q)
}

// Remove forgets a query. NotFound, or Denied if it is somebody else's.
func (s Service) Remove(ctx context.Context, actor fleet.Actor, name string) (Query, error) {
	q, err := s.Find(ctx, actor, name)
	if err != nil {
		return Query{}, err
	}
	if err := q.belongs(actor); err != nil {
		return Query{}, err
	}
	return s.Store.SaveQuery(ctx, Query{Name: name, Stamp: fleet.Stamp{Author: actor.Name, At: time.Now(), Removed: true}})
}

// belongs refuses everybody but the owner. Of a private query nothing more is said than that the name is taken.
func (q Query) belongs(actor fleet.Actor) error {
	switch {
	case q.Author == actor.Name:
		return nil
	case q.Private:
		return fault.New(fault.Denied, "the name %.80q is taken; choose another one", q.Name)
	}
	return fault.New(fault.Denied, "the saved query %.80q belongs to %s, who alone may change it; save yours under another name", q.Name, q.Author)
}
