package api

import (
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Deployed is a version that was deployed, and what was found in it before; nothing if it was not checked.
type Deployed struct {
	Version
	NewEnvironment bool       `json:"new_environment,omitempty"` // there was no environment of this name before
	Check          *CodeCheck `json:"check,omitempty"`
}

// CodeCheck is what was found in a version of code before it was deployed.
type CodeCheck struct {
	Version  string        `json:"version"`
	Base     string        `json:"base,omitempty"` // the version that it was compared with; empty: all files were read
	At       time.Time     `json:"at"`
	Seconds  float64       `json:"seconds"`
	Files    int           `json:"files"`            // that were read
	Sets     int           `json:"sets"`             // sets of classes of the nodes that it may change
	Compiled int           `json:"compiled"`         // of them, how many were compiled for, a node each
	More     int           `json:"more,omitempty"`   // nodes that were compiled for besides, because they read other changed files
	Unread   bool          `json:"unread,omitempty"` // files have mistakes: nothing was compiled
	Forced   bool          `json:"forced,omitempty"` // it was deployed in spite of its mistakes
	Mistakes int           `json:"mistakes"`         // of the findings
	Warnings int           `json:"warnings"`         // of the findings
	New      int           `json:"new_warnings"`     // of them, those that the compiler wrote for none of the catalogs that the checked nodes have
	Cut      int           `json:"cut,omitempty"`    // how many findings more there were: too many to be kept
	Findings []CodeFinding `json:"findings"`         // mistakes first, then warnings, what is new first, by place
}

// CodeFinding is one thing that was found.
type CodeFinding struct {
	Level   string   `json:"level"`          // mistake, warning, note
	File    string   `json:"file,omitempty"` // below the environment's root
	Line    int      `json:"line,omitempty"`
	Column  int      `json:"column,omitempty"`
	Message string   `json:"message"`
	New     bool     `json:"new,omitempty"`   // a warning of the compiler that it wrote for none of the catalogs that the checked nodes have
	Nodes   []string `json:"nodes,omitempty"` // some of those whose catalogs say it
	Alike   int      `json:"alike,omitempty"` // how many nodes have the same classes as those
}

// CheckFailed is the cause of a version.deploy that was refused for mistakes in the code.
type CheckFailed struct{ Check CodeCheck }

func (e *CheckFailed) Error() string {
	return "the check found " + fault.Count(e.Check.Mistakes, "mistake")
}
