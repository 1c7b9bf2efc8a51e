package codecheck

import (
	"cmp"
	"slices"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// kind is nodes with the same classes whose last catalogs read the same of what differs. One of them stands for all.
type kind struct {
	node    fleet.Certname
	nodes   int
	classes fleet.Digest     // empty: no catalog of the node is known
	reads   *compile.Reading // nil: nobody knows
}

// files is what the kind's catalogs read of what differs.
func (k kind) files() []string {
	if k.reads == nil {
		return nil
	}
	return k.reads.Files
}

// set is nodes that are compiled for by one of them.
type set struct {
	kind
	more bool // another one of the same classes is compiled for, too: this one reads other files
}

// choose picks whom to compile for, at most so many: one node of each set of classes, the largest sets first, of each set the node whose
// catalog read most of the files that nobody read yet; and then the nodes whose catalogs read most of what is left, as long as there
// is such. It also says how many sets there are, and which files, in order, only catalogs of others read.
func choose(kinds []kind, most int) (chosen []set, sets int, left []string) {
	c := chooser{kinds: kinds, covered: map[string]bool{}, of: make([]int, len(kinds))}
	bySet := c.sets()
	for at, members := range bySet[:min(len(bySet), most)] {
		best := members[0]
		for _, i := range members[1:] {
			if c.gain(i) > c.gain(best) {
				best = i
			}
		}
		c.take(best, at, bySet)
	}
	for len(c.chosen) < most {
		best := -1
		for i := range kinds {
			if n := c.gain(i); n > 0 && (best < 0 || n > c.gain(best) || n == c.gain(best) && kinds[i].nodes > kinds[best].nodes) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		c.more(best)
	}
	return c.chosen, len(bySet), c.left()
}

// chooser is the state of choose.
type chooser struct {
	kinds   []kind
	chosen  []set
	of      []int // the place of a kind's set among the sets, and so of who stands for it among the chosen
	covered map[string]bool
	gains   map[*compile.Reading]int // until the next one is chosen
}

// sets are the kinds by their classes, the largest first.
func (c *chooser) sets() [][]int {
	at, nodes := map[fleet.Digest]int{}, []int(nil)
	var sets [][]int
	for i, k := range c.kinds {
		n, there := at[k.classes]
		if !there || k.classes == "" {
			n = len(sets)
			at[k.classes] = n
			sets, nodes = append(sets, nil), append(nodes, 0)
		}
		sets[n] = append(sets[n], i)
		nodes[n] += k.nodes
	}
	order := make([]int, len(sets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(nodes[b], nodes[a]) })
	sorted := make([][]int, len(sets))
	for place, n := range order {
		sorted[place] = sets[n]
		for _, i := range sets[n] {
			c.of[i] = place
		}
	}
	return sorted
}

// gain is how many files a kind would add.
func (c *chooser) gain(i int) int {
	reads := c.kinds[i].reads
	if reads == nil {
		return 0
	}
	if n, known := c.gains[reads]; known {
		return n
	}
	n := 0
	for _, file := range reads.Files {
		if !c.covered[file] {
			n++
		}
	}
	if c.gains == nil {
		c.gains = map[*compile.Reading]int{}
	}
	c.gains[reads] = n
	return n
}

// take has a kind stand for all of its set.
func (c *chooser) take(i, at int, sets [][]int) {
	k := c.kinds[i]
	k.nodes = 0
	for _, member := range sets[at] {
		k.nodes += c.kinds[member].nodes
	}
	c.add(set{kind: k})
}

// more has a kind stand for itself beside the one of its set.
func (c *chooser) more(i int) {
	c.chosen[c.of[i]].nodes -= c.kinds[i].nodes
	c.add(set{kind: c.kinds[i], more: true})
}

func (c *chooser) add(s set) {
	c.chosen = append(c.chosen, s)
	for _, file := range s.files() {
		c.covered[file] = true
	}
	c.gains = nil
}

// left is the files that are read by others alone.
func (c *chooser) left() []string {
	others := map[string]bool{}
	for _, k := range c.kinds {
		for _, file := range k.files() {
			if !c.covered[file] {
				others[file] = true
			}
		}
	}
	list := make([]string, 0, len(others))
	for file := range others {
		list = append(list, file)
	}
	slices.Sort(list)
	return list
}
