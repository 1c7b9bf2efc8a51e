package action

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// The files of a module that code supplies.
const (
	SupplyDir    = "tutti"         // of a Puppet module; the folders in it are modules of actions
	MetadataFile = "metadata.json" // of such a folder
)

// The bounds of a Supply.
const (
	MaxSuppliedFiles = 200       // of a module
	MaxSuppliedBytes = 256 << 20 // of all its files
	maxPathBytes     = 400
)

// Supply is the modules that a node has from the code of its environment.
type Supply struct {
	Environment fleet.Environment `json:"environment"`
	Modules     []Supplied        `json:"modules"` // by name, each name once
}

// Supplied is one of them.
type Supplied struct {
	Name    string         `json:"name"`
	Module  string         `json:"module"`           // the Puppet module that has it
	Problem string         `json:"problem,omitzero"` // why nodes cannot have it
	Files   []SuppliedFile `json:"files,omitzero"`   // by path
}

// SuppliedFile is a file of its folder.
type SuppliedFile struct {
	Path   string       `json:"path"`
	Digest fleet.Digest `json:"sha256"`
	Size   int64        `json:"size"`
}

// Place is where the module lies in an environment.
func (s Supplied) Place() string { return s.Module + "/" + SupplyDir + "/" + s.Name }

// Digest names the module's files: its version, whatever it says of itself.
func (s Supplied) Digest() fleet.Digest {
	text, err := json.Marshal(struct {
		Name  string         `json:"name"`
		Files []SuppliedFile `json:"files"`
	}{s.Name, s.Files}, json.Deterministic(true))
	if err != nil {
		panic(err) // texts and numbers
	}
	return fleet.DigestOf(text)
}

// Digest names what is supplied, whichever environment it is.
func (s Supply) Digest() fleet.Digest {
	text, err := json.Marshal(s.Modules, json.Deterministic(true))
	if err != nil {
		panic(err) // texts and numbers
	}
	return fleet.DigestOf(text)
}

// NewSupply makes a supply of the folders that an environment has. One that nodes cannot have says why; of two with the same name nodes have
// none, and what is more than MaxModules is left out.
func NewSupply(env fleet.Environment, found []Supplied) Supply {
	for i := range found {
		found[i].Name = fitText(found[i].Name, pxp.MaxNameBytes)
	}
	slices.SortStableFunc(found, func(a, b Supplied) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Module, b.Module)) })
	s := Supply{Environment: env, Modules: []Supplied{}}
	for _, m := range found {
		last := len(s.Modules) - 1
		switch {
		case last >= 0 && s.Modules[last].Name == m.Name:
			s.Modules[last].Files = nil
			s.Modules[last].Problem = fitText("two Puppet modules have a module of actions of this name: "+s.Modules[last].Module+" and "+m.Module+
				"; rename the folder of one", MaxProblemBytes)
			continue
		case len(s.Modules) == MaxModules:
			return s
		}
		if err := m.check(); err != nil {
			m.Files, m.Problem = nil, fitText(fault.Detail(err), MaxProblemBytes)
		}
		s.Modules = append(s.Modules, m)
	}
	return s
}

// ParseSupply reads and checks what a server says that a node has.
func ParseSupply(text []byte) (Supply, error) {
	var s Supply
	if err := json.Unmarshal(bytes.TrimSpace(text), &s); err != nil {
		return s, fault.Wrap(fault.Invalid, err, "it is not a list of modules that code supplies")
	}
	if len(s.Modules) > MaxModules {
		return s, fault.New(fault.Invalid, "field modules: it has %d elements, at most %d are allowed", len(s.Modules), MaxModules)
	}
	for i, m := range s.Modules {
		if i > 0 && s.Modules[i-1].Name >= m.Name {
			return s, fault.New(fault.Invalid, "field modules: they must be in the order of their names, each once")
		}
		if m.Problem != "" {
			s.Modules[i].Files = nil
			continue
		}
		if err := m.check(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s Supplied) check() error {
	if err := CheckName("name", s.Name); err != nil {
		return err
	}
	if len(s.Files) > MaxSuppliedFiles {
		return fault.New(fault.Invalid, "it has %d files, at most %d are allowed", len(s.Files), MaxSuppliedFiles)
	}
	var bytes int64
	for _, f := range s.Files {
		if err := f.check(); err != nil {
			return err
		}
		if bytes += f.Size; bytes > MaxSuppliedBytes {
			return fault.New(fault.Invalid, "its files have more than %d bytes together", int64(MaxSuppliedBytes))
		}
	}
	if !slices.ContainsFunc(s.Files, func(f SuppliedFile) bool { return f.Path == MetadataFile }) {
		return fault.New(fault.Invalid, "its folder has no %s", MetadataFile)
	}
	return nil
}

func (f SuppliedFile) check() error {
	local := f.Path != "" && len(f.Path) <= maxPathBytes && path.Clean(f.Path) == f.Path && !path.IsAbs(f.Path) && f.Path != ".." &&
		!strings.HasPrefix(f.Path, "../") &&
		!strings.ContainsAny(f.Path, "\\:\x00")
	if !local {
		return fault.New(fault.Invalid, "the file %.80q has a name that not every node can have", f.Path)
	}
	if f.Size < 0 || f.Size > MaxSuppliedBytes {
		return fault.New(fault.Invalid, "the file %.80q has more than %d bytes", f.Path, int64(MaxSuppliedBytes))
	}
	if _, err := fleet.ParseDigest(string(f.Digest)); err != nil {
		return fault.New(fault.Invalid, "the file %.80q: %s", f.Path, fault.Detail(err))
	}
	return nil
}
