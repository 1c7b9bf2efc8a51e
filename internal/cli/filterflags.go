package cli

import (
	"reflect"
	"strconv"

	"github.com/tutti-project/tutti/api"
)

// addFilterFlags are conditions on nodes, under the letters that mco has for them.
func addFilterFlags(f flagSet, t *targetFlags) {
	f.StringArrayVarP(&t.filter.Facts, "fact", "F", nil,
		"only nodes with this fact: os.family=Debian, memory.free>100, fqdn=/^web/; as all these, may be given many times")
	f.StringArrayVarP(&t.filter.Classes, "class", "C", nil, "only nodes with this class in their last catalog: NAME or /RE/")
	f.StringArrayVarP(&t.filter.Modules, "module", "A", nil, "only nodes that have this module: NAME or /RE/")
	f.StringArrayVarP(&t.filter.Names, "name", "I", nil, "only nodes of this name: NAME or /RE/; of several, one must fit")
	f.StringArrayVarP(&t.filter.Words, "with", "W", nil, "only nodes with all these facts and classes: 'os.family=Debian role::web'")
	f.StringVarP(&t.filter.Select, "select", "S", "",
		`only nodes for which this holds: 'fact("os.family") == "Debian" and not service("ntp").status == "running"'`)
	addLimitFlags(f, t)
}

// addLimitFlags take some of the nodes.
func addLimitFlags(f flagSet, t *targetFlags) {
	f.StringVar(&t.limit, "limit", "", "at most so many of these nodes: 10, or a share such as 5%")
	f.Var(&t.seed, "limit-seed", "draw the nodes of --limit by this number, the same each time; without it the first by name are taken")
	f.BoolVarP(&t.one, "one", "1", false, "one node: --limit 1")
}

// seedFlag is a number that may be missing.
type seedFlag struct{ seed *int64 }

// String implements pflag.Value.
func (s *seedFlag) String() string {
	if s.seed == nil {
		return ""
	}
	return strconv.FormatInt(*s.seed, 10)
}

// Set implements pflag.Value.
func (s *seedFlag) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	s.seed = &n
	return err
}

// Type implements pflag.Value.
func (*seedFlag) Type() string { return "number" }

// narrow puts conditions and limit into targets.
func (t targetFlags) narrow(to *api.JobTargets) {
	if t.filtered() {
		f := t.filter
		to.Filter = &f
	}
	to.Limit, to.Seed = t.most(), t.seed.seed
}

// most is how many nodes are meant at most; empty: all.
func (t targetFlags) most() string {
	if t.one {
		return "1"
	}
	return t.limit
}

// filtered says whether there is a condition.
func (t targetFlags) filtered() bool { return !reflect.ValueOf(t.filter).IsZero() }
