package deliver

import (
	"cmp"
	"slices"
)

// GroupMode is the mode of a group's nodes.
type GroupMode struct {
	Group string // id
	Mode  Mode
}

// Membership is a group that a node is in.
type Membership struct {
	Group string // id
	Name  string
	Depth int // of the group in the tree; the root has 0
}

// Reason is what a node has its mode from.
type Reason struct {
	From  string // node, group or setting
	Group string // name, of a group
}

// The places that a mode comes from.
const (
	FromNode    = "node"
	FromGroup   = "group"
	FromSetting = "setting"
)

// Decide finds the mode of a node: its own, else that of the deepest of its groups that
// has one, else the setting. Of groups that are equally deep one that says released
// wins: what was not reviewed must not slip through.
func Decide(own Mode, modes []GroupMode, member []Membership, setting Mode) (Mode, Reason) {
	if own != "" {
		return own, Reason{From: FromNode}
	}
	by := make(map[string]Mode, len(modes))
	for _, m := range modes {
		by[m.Group] = m.Mode
	}
	member = slices.DeleteFunc(slices.Clone(member), func(m Membership) bool { return by[m.Group] == "" })
	if len(member) == 0 {
		return setting, Reason{From: FromSetting}
	}
	deepest := slices.MaxFunc(member, func(a, b Membership) int {
		return cmp.Or(cmp.Compare(a.Depth, b.Depth), cmp.Compare(rank(by[a.Group]), rank(by[b.Group])), cmp.Compare(b.Name, a.Name))
	})
	return by[deepest.Group], Reason{From: FromGroup, Group: deepest.Name}
}

func rank(m Mode) int {
	if m == Released {
		return 1
	}
	return 0
}
