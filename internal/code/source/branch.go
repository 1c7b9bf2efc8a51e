package source

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// State is how far the newest deploy of an environment is.
type State string

// The states.
const (
	Queued    State = "queued"
	Deploying State = "deploying"
	Complete  State = "complete"
	Failed    State = "failed"
)

// Branch is a branch of a source, the environment that it is, and the newest deploy of it.
type Branch struct {
	Environment fleet.Environment
	Source      string
	Name        string
	GoneAt      time.Time // since when the repository has no such branch; zero: it has

	Commit     string       // that was deployed last; empty: none yet
	Version    fleet.Digest // that it became
	DeployedAt time.Time

	ID      int64 // of the newest deploy; 0: there was none
	State   State
	Tried   string // the commit that it was of
	Error   string // why it failed
	Retry   bool   // the reason may pass
	By      string // who asked for it; empty: the source itself
	Queued  time.Time
	EndedAt time.Time

	NextID int64 // of the deploy that was asked for while this one ran; 0: none
	NextBy string

	// Ended is the deploy that ended last, for those who wait for it while the next one is queued. No row keeps it: nobody waits across a restart.
	Ended Ending `json:"-"`
}

// Ending is how a deploy ended.
type Ending struct {
	ID    int64 // 0: none has
	State State // Complete or Failed
	Error string
}

// ask asks for a deploy, and returns its number: a new one, or that of the one that waits. fresh is a number that nobody has.
func (b *Branch) ask(fresh func() int64, by string, at time.Time) int64 {
	switch {
	case b.State == Queued:
		return b.ID
	case b.State == Deploying && b.NextID != 0:
		return b.NextID
	case b.State == Deploying:
		b.NextID, b.NextBy = fresh(), by
		return b.NextID
	}
	b.ID, b.By, b.State, b.Queued, b.Error, b.Retry = fresh(), by, Queued, at, "", false
	return b.ID
}

// end notes how a deploy ended; one that waits is queued.
func (b *Branch) end(of Outcome, at time.Time) {
	b.Tried, b.EndedAt = cmp.Or(of.Commit, b.Tried), at
	if of.Err != nil {
		b.State, b.Error, b.Retry = Failed, ErrorText(of.Err), of.Retry
	} else {
		b.State, b.Error, b.Retry = Complete, "", false
		b.Commit, b.Version, b.DeployedAt, b.GoneAt = of.Commit, of.Version, at, time.Time{}
	}
	b.Ended = Ending{b.ID, b.State, b.Error}
	if b.NextID != 0 {
		b.ID, b.By, b.State, b.Queued, b.NextID, b.NextBy = b.NextID, b.NextBy, Queued, at, 0, ""
	}
}

// after is the row as a deploy, or a later one, left it; ok is false as long as it has not ended.
func (b Branch) after(id int64) (left Branch, ok bool) {
	if b.Ended.ID >= id {
		b.ID, b.State, b.Error = b.Ended.ID, b.Ended.State, b.Ended.Error
		return b, true
	}
	return b, b.ID == id && (b.State == Complete || b.State == Failed) // before a restart
}

// Outcome is what a deploy ended.
type Outcome struct {
	Commit  string
	Version fleet.Digest
	Err     error
	Retry   bool // what is wrong may pass
}

// maxError is the longest reason that is kept, in bytes.
const maxError = 2000

// ErrorText is what a row says of an error.
func ErrorText(err error) string {
	text := cmp.Or(fault.Detail(err), "the server made a mistake; its log says which")
	if hint := fault.Hint(err); hint != "" {
		text += ": " + hint
	}
	return text[:min(len(text), maxError)]
}

// Plan is what a look at a repository leads to.
type Plan struct {
	Deploy  []Branch // that differ, or were never tried
	Gone    []Branch // whose branch is not there any more
	Refused []string // branches of which no environment can be made, and why

	Matching int // branches that the source wants
}

// Plan compares the newest commits of a repository's branches with what is known of all environments.
func (s Source) Plan(heads map[string]string, known map[fleet.Environment]Branch) Plan {
	var p Plan
	taken := map[fleet.Environment]string{}
	for _, branch := range slices.Sorted(maps.Keys(heads)) {
		env, wanted, err := s.Environment(branch)
		b, there := known[env]
		switch other := taken[env]; {
		case !wanted && err == nil:
			continue
		case err != nil:
			p.Matching++
			p.Refused = append(p.Refused, fmt.Sprintf("%.80q: %s", branch, fault.Detail(err)))
			continue
		case other != "":
			p.Refused = append(p.Refused, fmt.Sprintf("%.80q: the environment %s is the branch %.80q already", branch, env, other))
			continue
		case there && b.Source != s.Name:
			p.Refused = append(p.Refused, fmt.Sprintf("%.80q: the environment %s is a branch of the source %s already", branch, env, b.Source))
			continue
		}
		taken[env] = branch
		p.Matching++
		if !there {
			b = Branch{Environment: env, Source: s.Name}
		}
		renamed := b.Name != branch
		if b.Name = branch; renamed || b.Tried != heads[branch] || b.State == Failed && b.Retry || !b.GoneAt.IsZero() {
			b.GoneAt = time.Time{}
			p.Deploy = append(p.Deploy, b)
		}
	}
	for _, env := range slices.Sorted(maps.Keys(known)) {
		if b := known[env]; b.Source == s.Name && taken[env] == "" {
			p.Gone = append(p.Gone, b)
		}
	}
	p.Refused = p.Refused[:min(len(p.Refused), maxRefused)]
	return p
}

// maxRefused is how many branches without an environment are named.
const maxRefused = 50
