package fleet

// Grant is a permission and what it is good for. An empty scope means all there
// is; several scopes must all hold.
type Grant struct {
	Permission   Permission `json:"permission"`             // or "*"
	Environments []string   `json:"environments,omitempty"` // names; * stands for any characters
	Tasks        []string   `json:"tasks,omitempty"`        // names; * stands for any characters
	Actions      []string   `json:"actions,omitempty"`      // MODULE.ACTION; * stands for any characters
	Nodes        string     `json:"nodes,omitempty"`        // a condition of PQL on the inventory: facts.role = "db"
}

// Scoped says whether g is not good for everything.
func (g Grant) Scoped() bool {
	return len(g.Environments)+len(g.Tasks)+len(g.Actions) > 0 || g.Nodes != ""
}

// Object is what an act is about, as far as it is known. What it does not name, a
// scoped grant does not cover: the whole of something takes a grant without scope.
type Object struct {
	Node        Certname
	Environment Environment
	Task        string
	Action      string   // MODULE.ACTION
	Inside      []string // the conditions of grants that hold for Node
}
