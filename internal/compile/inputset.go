package compile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// InputSet is all that a compilation read: while it holds, compiling again would
// give the same catalog (see Holds). When in doubt it has more than was read.
type InputSet struct {
	At       time.Time    `json:"at"`                 // when it was compiled
	Engine   string       `json:"engine"`             // the compiler and what it is made of
	Given    fleet.Digest `json:"given"`              // the classification: classes, parameters, data
	Values   []Value      `json:"values,omitempty"`   // of facts, trusted data and server facts; by pointer
	Asked    []Question   `json:"asked,omitempty"`    // of the inventory, in order
	Volatile []string     `json:"volatile,omitempty"` // what cannot be followed; sorted
	Sources  Sources      `json:"sources"`            // of the version it was compiled of
	// Collected is what the catalog holds of other nodes: no input, but what else is to
	// be known of a catalog that is shown only later.
	Collected []Collected `json:"collected,omitempty"`
	// Answers holds what Asked was answered, as far as it is kept: Finish stores it apart, and Verifications.Answers reads it.
	Answers map[fleet.Digest]json.RawMessage `json:"-"`
}

// Value is one value that was read, or looked for and not there.
type Value struct {
	Pointer string `json:"pointer"` // a JSON pointer (RFC 6901) that begins with /facts, /trusted or /server_facts
	// Seen: only whether it is there was looked at; of a pointer that ends in a slash,
	// only which members there are.
	Seen   bool   `json:"seen,omitempty"`
	Digest string `json:"digest,omitempty"` // of the value's JSON; empty: it was not there
}

// Sources is what was read of a version's files. Paths are below the environment's
// root, without slashes at either end; all lists are sorted and hold nothing twice.
type Sources struct {
	Files    []string `json:"files,omitempty"`    // a file that was read, or looked for and not there
	Lists    []string `json:"lists,omitempty"`    // a directory whose names were listed
	Names    []string `json:"names,omitempty"`    // a directory with all names below it
	Trees    []string `json:"trees,omitempty"`    // a file or directory with all content below it
	Modules  []string `json:"modules,omitempty"`  // a module's name: which directory has it, if any
	Anywhere []string `json:"anywhere,omitempty"` // a path below a module: which modules have it
}

// lists are the fields by the letter that stands for them in a Group.
func (s *Sources) lists() [6]struct {
	letter byte
	paths  *[]string
} {
	return [6]struct {
		letter byte
		paths  *[]string
	}{{'a', &s.Anywhere}, {'f', &s.Files}, {'l', &s.Lists}, {'m', &s.Modules}, {'n', &s.Names}, {'t', &s.Trees}}
}

// Add takes over what another one has.
func (s *Sources) Add(more Sources) {
	theirs := more.lists()
	for i, list := range s.lists() {
		*list.paths = slices.Compact(slices.Sorted(slices.Values(append(slices.Clip(*list.paths), *theirs[i].paths...))))
	}
}

// Count is how many entries there are.
func (s *Sources) Count() (n int) {
	for _, list := range s.lists() {
		n += len(*list.paths)
	}
	return n
}

// Group is a part of Sources that many nodes share: what was read of one module, or
// of one directory. Its text is lines of a letter, a space and a path.
type Group struct {
	Digest fleet.Digest
	Text   []byte
}

// Groups takes s apart. Equal sources give equal groups, in one order.
func (s *Sources) Groups() []Group {
	texts := map[string]*bytes.Buffer{}
	for _, list := range s.lists() {
		for _, path := range *list.paths {
			key := groupOf(list.letter, path)
			if texts[key] == nil {
				texts[key] = new(bytes.Buffer)
			}
			_, _ = fmt.Fprintf(texts[key], "%c %s\n", list.letter, path) // a buffer takes all
		}
	}
	groups := make([]Group, 0, len(texts))
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		text := texts[key].Bytes()
		groups = append(groups, Group{Digest: fleet.DigestOf(text), Text: text})
	}
	return groups
}

// groupOf is what a path is grouped by: its module or upper directory. Names of
// nodes in paths are mostly further down, and then only their own small group
// differs.
func groupOf(letter byte, path string) string {
	if letter == 'm' || letter == 'a' {
		return string(letter)
	}
	parts := strings.SplitN(path, "/", 5)
	depth := 2
	if strings.HasPrefix(path, ".") {
		depth = 3 // .base_modules/0/apache
	}
	if len(parts) <= depth {
		return "f"
	}
	return strings.Join(parts[:depth], "/")
}

// AddGroup takes over a group's text; Invalid for one that Groups never wrote.
func (s *Sources) AddGroup(text []byte) error {
	lists := s.lists()
	for line := range bytes.Lines(text) {
		path, ok := bytes.CutSuffix(line, []byte("\n"))
		i := -1
		if ok && len(path) > 2 && path[1] == ' ' {
			i = slices.IndexFunc(lists[:], func(l struct {
				letter byte
				paths  *[]string
			},
			) bool {
				return l.letter == path[0]
			})
		}
		if i < 0 {
			return fault.New(fault.Invalid, "%.80q is no line of a group of sources", line)
		}
		*lists[i].paths = append(*lists[i].paths, string(path[2:]))
	}
	return nil
}

// Sort brings lists that were put together of groups into order.
func (s *Sources) Sort() {
	for _, list := range s.lists() {
		slices.Sort(*list.paths)
	}
}

// Digest names the set: equal sets have equal digests.
func (s *InputSet) Digest() fleet.Digest {
	text, _ := json.Marshal(s) // texts and numbers always marshal
	return fleet.DigestOf(text)
}

// Reads is what the compiler noticed of one compilation.
type Reads struct {
	Sources  Sources
	Values   []string // pointers of values that were read
	Present  []string // pointers of which it was asked whether they are there
	Volatile []string
}

// Narrowed is why a catalog is volatile whose code asked with a Reach: another asker is told more.
const Narrowed = "the inventory told it only of nodes that the preview's author may see"

// newInputSet puts together what was read of the order, of the inventory and of
// files.
func newInputSet(o Order, out Outcome, inlined Sources) *InputSet {
	if out.Reads == nil {
		return nil
	}
	set := &InputSet{
		At: time.Now(), Engine: out.Engine, Given: givenDigest(o), Asked: out.Asked, Sources: out.Reads.Sources, Collected: out.Collected, Answers: out.Answers,
	}
	volatile := slices.Clone(out.Reads.Volatile)
	if o.Reach != "" && len(out.Asked) > 0 {
		volatile = append(volatile, Narrowed)
	}
	set.Volatile = slices.Compact(slices.Sorted(slices.Values(volatile)))
	set.Sources.Add(inlined)
	have := newValues(o)
	for _, pointer := range out.Reads.Values {
		set.Values = append(set.Values, have.value(pointer, false))
	}
	for _, pointer := range out.Reads.Present {
		set.Values = append(set.Values, have.value(pointer, true))
	}
	slices.SortFunc(set.Values, func(a, b Value) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(len(a.Digest), len(b.Digest)))
	})
	return set
}

// givenDigest is the digest of what groups give. Nothing is what null, an empty
// object and no value at all have in common.
func givenDigest(o Order) fleet.Digest {
	var text []byte
	for _, part := range []json.RawMessage{o.Classes, o.Parameters, o.Data} {
		compacted, err := catalog.Compact("classification", orNull(part))
		if err != nil || string(compacted) == "{}" {
			compacted = []byte("null")
		}
		text = append(append(text, compacted...), '\n')
	}
	return fleet.DigestOf(text)
}

func orNull(part json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(part)) == 0 {
		return json.RawMessage("null")
	}
	return part
}
