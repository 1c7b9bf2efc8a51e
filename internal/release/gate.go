package release

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Gate says whether a release may go on. It is asked when a release is made, and before each of its waves.
type Gate interface {
	Judge(ctx context.Context, q Question) (Verdict, error)
}

// Question is what is about to be done.
type Question struct {
	Release      int64 // 0: it is about to be made
	Kind         Kind
	Preview      int64               // 0: a roll back
	Environments []fleet.Environment // of what is given, by name: one, but of a roll back
	Author       string
	AuthorKind   fleet.ActorKind
	Digest       fleet.Digest     // over preview, targets with their catalogs, and waves
	Nodes        []fleet.Certname // all that have a catalog in the release, by name
	Waves        []int            // how many nodes each has
	Wave         int              // that is about to begin; 0: the release is about to be made
	At           time.Time
}

// Verdict is what rules say of a release.
type Verdict struct {
	Findings []Finding
	Frozen   *Freeze // nil: something may begin now
}

// Effect is what a rule does.
type Effect string

// The effects.
const (
	Deny    Effect = "deny"
	Warn    Effect = "warn"
	Approve Effect = "approve" // somebody of Role has to
)

// Finding is what one rule says.
type Finding struct {
	Rule      string
	Effect    Effect
	Role      string // of Approve
	AuthorMay bool   // of Approve: the author's own approval is good enough
	Message   string
	Nodes     int      // that it is about
	Groups    []string // changes of the preview that it is about, by key
}

// Freeze is a time in which nothing begins.
type Freeze struct {
	Until time.Time
	Why   string
}

// Open is the gate of a server without rules.
type Open struct{}

// Judge implements Gate.
func (Open) Judge(context.Context, Question) (Verdict, error) { return Verdict{}, nil }

// denied is the first rule that denies.
func (v Verdict) denied() (Finding, bool) {
	for _, f := range v.Findings {
		if f.Effect == Deny {
			return f, true
		}
	}
	return Finding{}, false
}

// needs is the approvals that rules ask for, and the one that the release itself does.
func (v Verdict) needs(role string) []Need {
	var needs []Need
	if role != "" {
		needs = append(needs, Need{Role: role})
	}
	for _, f := range v.Findings {
		if f.Effect == Approve {
			needs = append(needs, Need{Role: f.Role, Rule: f.Rule, Message: f.Message, AuthorMay: f.AuthorMay})
		}
	}
	return needs
}

// Lacking is the needs that nobody's approval meets: it has to be of exactly this release, and not its author's.
func Lacking(r Release, approvals []Approval) []Need {
	var lacking []Need
	for _, need := range r.Needs {
		met := false
		for _, a := range approvals {
			met = met || a.Role == need.Role && a.Digest == r.Digest && (need.AuthorMay || a.By != r.Author)
		}
		if !met {
			lacking = append(lacking, need)
		}
	}
	return lacking
}
