package release

import (
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Kind is where the catalogs of a release come from.
type Kind string

// The kinds.
const (
	Forward  Kind = "release"  // from a preview
	Rollback Kind = "rollback" // from generations that nodes had before
)

// Release is catalogs that are handed to nodes.
type Release struct {
	ID          int64
	Kind        Kind
	Preview     int64 // of Forward
	Of          int64 // of Rollback: the release that is taken back; 0: nodes that were named
	Environment fleet.Environment
	Version     fleet.Digest // of Forward
	Description string
	Author      string
	AuthorKind  fleet.ActorKind
	Options

	State  State
	Hold   Hold      // of Paused: why
	Until  time.Time // of a freeze: when it ends
	Reason string    // why it is paused, stops, or ended as it did, for people
	Kill   bool      // of Stopping: what runs is ended, too
	Wave   int       // the number of the wave that it is at; 0: none has begun
	Waves  []Wave    // by number
	Needs  []Need    // approvals that are needed
	Digest fleet.Digest
	Counts Counts // its targets by state

	Revision  int64 // counts the changes of the release and its targets
	CreatedAt time.Time
	StartedAt time.Time // the first wave began
	EndedAt   time.Time
}

// Options is how a release goes on.
type Options struct {
	MaxFailures *int      // more failures pause it; nil: no budget
	Promotion   Promotion // how one wave follows the other
	Soak        time.Duration
	NoopFirst   bool          // each wave is run in noop mode first
	Concurrency int           // runs at once; 0: as many as the wave has
	Timeout     time.Duration // of each run; 0: the server's
	WaitOffline time.Duration // how long a wave waits for nodes that are not connected
	ApproveBy   string        // role whose approval it needs, whatever the rules say; empty: none
}

// Promotion is how one wave follows the other.
type Promotion string

// How waves follow each other.
const (
	Automatic Promotion = "auto"   // at once
	Manual    Promotion = "manual" // when somebody promotes it
	Soaked    Promotion = "soak"   // after a time, or when somebody promotes it
)

// Promotions is every way in which one wave follows the other.
func Promotions() []Promotion { return []Promotion{Automatic, Manual, Soaked} }

// Wave is some targets of a release.
type Wave struct {
	Number    int       `json:"number"` // from 1
	Size      string    `json:"size"`   // as it was asked for: 1%, 10, @group, rest
	Nodes     int       `json:"nodes"`
	Phase     Phase     `json:"phase"`
	Round     int       `json:"round"`              // from 1: skipped targets are given another one
	Rehearse  int64     `json:"rehearse,omitempty"` // the round's job in noop mode
	Job       int64     `json:"job,omitempty"`      // the round's job
	Jobs      []int64   `json:"jobs,omitempty"`     // of rounds before
	Promoted  bool      `json:"promoted,omitempty"` // somebody said that the next one may begin
	Retry     bool      `json:"retry,omitempty"`    // when its job is over, targets that were skipped get another round
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Counts    Counts    `json:"counts,omitempty"` // its targets by state; nil: written before they were counted
}

// Need is an approval that a release needs.
type Need struct {
	Role      string `json:"role"`
	Rule      string `json:"rule,omitempty"` // that asks for it; empty: who made the release
	Message   string `json:"message,omitempty"`
	AuthorMay bool   `json:"author_may,omitempty"` // the author's own is good enough
}

// Approval is somebody's yes.
type Approval struct {
	Role   string
	By     string
	Text   string
	Digest fleet.Digest // of what was approved
	At     time.Time
}

// Target is a node of a release.
type Target struct {
	Number  int // its place by name, from 1
	Node    fleet.Certname
	Wave    int             // 0: of none, as it cannot be released to
	Round   int             // of the wave, in which it came into its state
	Base    fleet.Digest    // the catalog that the node has to have; empty: whatever it has, or none
	Catalog deliver.Catalog // that it is given; of one that cannot be released to empty
	State   Standing
	Reason  string
	// Generation that the release gave the node; 0: none yet, or taken back.
	Generation int64
	Report     string    // transaction of the run that counts
	RunEnded   time.Time // when it ended well; its report says the rest
	RunChanged bool      // it said that it changed something
	Revision   int64     // of the release, at its latest change
}

// Counts is how many targets are in each state.
type Counts map[Standing]int

// Count counts targets by state.
func Count(targets []Target) Counts {
	counts := Counts{}
	for _, t := range targets {
		counts[t.State]++
	}
	return counts
}

// CountWaves counts targets by wave and state; those of no wave are in wave 0.
func CountWaves(targets []Target) map[int]Counts {
	waves := map[int]Counts{}
	for _, t := range targets {
		if waves[t.Wave] == nil {
			waves[t.Wave] = Counts{}
		}
		waves[t.Wave][t.State]++
	}
	return waves
}

// Tally notes how many targets are in each state, of each wave and of all. The waves are new ones: others keep what they have.
func (r *Release) Tally(waves map[int]Counts) {
	r.Counts, r.Waves = Counts{}, slices.Clone(r.Waves)
	for _, counts := range waves {
		for state, n := range counts {
			r.Counts[state] += n
		}
	}
	for i, w := range r.Waves {
		r.Waves[i].Counts = waves[w.Number]
	}
}

// Counted takes over what was counted of a release, of which no target moved since.
func (r *Release) Counted(before Release) {
	r.Counts, r.Waves = before.Counts, slices.Clone(r.Waves)
	for i := range min(len(r.Waves), len(before.Waves)) {
		r.Waves[i].Counts = before.Waves[i].Counts
	}
}

// Total is all of them.
func (c Counts) Total() (n int) {
	for _, count := range c {
		n += count
	}
	return n
}

// Failures is how many count against the budget: those that were tried and did not succeed.
func (c Counts) Failures() int { return c[Failed] + c[Foreign] + c[TimedOut] }

// Succeeded is how many have the catalog and applied it.
func (c Counts) Succeeded() int { return c[Unchanged] + c[Changed] }

// Entry is something that somebody decided, or that the release did.
type Entry struct {
	Number int64
	At     time.Time
	By     string // empty: the release itself
	Text   string
}
