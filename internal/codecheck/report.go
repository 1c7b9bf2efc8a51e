package codecheck

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Level is how much a finding matters.
type Level string

// The levels. Only a mistake refuses a version.
const (
	Mistake Level = "mistake"
	Warning Level = "warning"
	Note    Level = "note"
	// Outside is how a parser tells of a call that asks the server's machine: a note where catalogs are used again.
	Outside Level = "outside"
)

// Finding is one thing to say of a version.
type Finding struct {
	Level   Level            `json:"level"`
	File    string           `json:"file,omitempty"` // below the environment's root; empty: of no file
	Line    int              `json:"line,omitempty"` // 0: not known
	Column  int              `json:"column,omitempty"`
	Message string           `json:"message"`
	New     bool             `json:"new,omitempty"`   // of the compiler: it wrote that for none of the catalogs that the checked nodes have
	Nodes   []fleet.Certname `json:"nodes,omitempty"` // whose catalogs say it; each stands for those with the same classes
	Alike   int              `json:"alike,omitempty"` // how many nodes those are
}

// Report is what a check found.
type Report struct {
	Environment fleet.Environment `json:"environment"`
	Version     fleet.Digest      `json:"version"`
	Base        fleet.Digest      `json:"base,omitempty"` // what it was compared with; empty: all files were read
	At          time.Time         `json:"at"`
	Took        time.Duration     `json:"took"`
	Files       int               `json:"files"`              // that were read
	Sets        int               `json:"sets"`               // sets of classes of the nodes that it may change
	Compiled    int               `json:"compiled"`           // of them, how many were compiled for
	More        int               `json:"more,omitempty"`     // nodes that were compiled for besides, because they read other changed files
	Unread      bool              `json:"unread,omitempty"`   // files have mistakes: nothing was compiled
	Forced      bool              `json:"forced,omitempty"`   // it was deployed in spite of its mistakes
	Cut         int               `json:"cut,omitempty"`      // how many findings more there were than are kept
	Findings    []Finding         `json:"findings,omitempty"` // mistakes first, then warnings, what is new first, by place
}

// Count is how many findings are of a level.
func (r *Report) Count(level Level) int {
	n := 0
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Store keeps the reports of versions that were deployed.
type Store interface {
	// SaveCheck keeps a report instead of what is kept of its environment and version.
	SaveCheck(ctx context.Context, r Report) error
	// Check is the report of a version; NotFound if it was not checked, or is not kept any more. Reports go with their
	// versions: those of versions that an environment does not have any more may be forgotten at any time.
	Check(ctx context.Context, env fleet.Environment, version fleet.Digest) (Report, error)
}

// Refused is the error for a version that has mistakes.
type Refused struct{ Report Report }

func (e *Refused) Error() string {
	n := e.Report.Count(Mistake)
	text := "the code has " + fault.Count(n, "mistake")
	for _, f := range e.Report.Findings {
		if f.Level == Mistake {
			return text + ", first " + fleet.Placed(f.File, f.Line, f.Message)
		}
	}
	return text
}
