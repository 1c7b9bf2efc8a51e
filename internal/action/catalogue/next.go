package catalogue

import (
	"iter"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Thing is what can be asked for: the list of a set, or the metadata of a module.
type Thing struct {
	Set    fleet.Digest // empty: a module
	Module fleet.Digest
	Name   string // of the module
}

// Wanted is a thing that is not known.
type Wanted struct {
	Thing     Thing
	Holders   iter.Seq[fleet.Certname] // nodes that have it and are connected
	NotBefore time.Time                // it was asked for in vain
}

// Question is a thing that is asked of a node.
type Question struct {
	Node  fleet.Certname
	Thing Thing
}

// Situation is what Next decides by.
type Situation struct {
	Wanted  []Wanted
	Open    []Question                   // not answered yet
	Resting map[fleet.Certname]time.Time // nodes that were asked in vain, and are not asked before a time
	Most    int                          // questions that may be open
	Now     time.Time
}

// Next is what is to be asked now: each thing of one node, each node for one thing at a time, and all that can be asked within Most.
func Next(s Situation) []Question {
	asked, busy := map[Thing]bool{}, map[fleet.Certname]bool{}
	for _, q := range s.Open {
		asked[q.Thing], busy[q.Node] = true, true
	}
	var next []Question
	for _, w := range s.Wanted {
		if len(s.Open)+len(next) >= s.Most {
			break
		}
		if asked[w.Thing] || s.Now.Before(w.NotBefore) {
			continue
		}
		if node := s.choose(w.Holders, busy); node != "" {
			asked[w.Thing], busy[node] = true, true
			next = append(next, Question{node, w.Thing})
		}
	}
	return next
}

// choose is a node that can be asked, one that has never been asked in vain if there is such; empty: there is none.
func (s Situation) choose(holders iter.Seq[fleet.Certname], busy map[fleet.Certname]bool) (rested fleet.Certname) {
	for node := range holders {
		until, failed := s.Resting[node]
		switch {
		case busy[node] || s.Now.Before(until):
		case !failed:
			return node
		case rested == "":
			rested = node
		}
	}
	return rested
}
