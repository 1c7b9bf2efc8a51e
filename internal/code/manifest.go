package code

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// VersionID names a version: the digest of its manifest. It is the code_id and
// the config_version that agents see.
type VersionID = fleet.Digest

// File is one entry of a manifest. Directories are implied by their files,
// except empty ones, which have Kind Dir.
type File struct {
	Path       string       `json:"path"` // relative to the environment's root, slashes, clean
	Kind       FileKind     `json:"kind,omitempty"`
	Digest     fleet.Digest `json:"digest,omitempty"` // regular files
	Size       int64        `json:"size,omitempty"`   // bytes
	Executable bool         `json:"executable,omitempty"`
	Target     string       `json:"target,omitempty"` // of a symbolic link; stays inside the environment
}

// FileKind tells regular files from the rest.
type FileKind string

// The kinds of file. A regular file is the empty word, because nearly all are.
const (
	Regular FileKind = ""
	Dir     FileKind = "dir"
	Link    FileKind = "link"
)

// Manifest lists an environment's files, sorted by path (bytewise).
//
// Module directories outside the environment (absolute entries of its module
// path, and the base module path given at deploy) are part of the version under
// BaseModules/<n>/, n counting from 0 in the order of ModulePath, so that a
// version never depends on the machine it is compiled on.
type Manifest struct {
	// ModulePath holds the directories of modules below the root, in order.
	ModulePath []string `json:"module_path"`
	Files      []File   `json:"files"`
	// Engine names the Puppet installation that compiles the version; empty: the server's default.
	Engine string `json:"engine,omitempty"`
}

// IsControlRepository says whether there is anything that Puppet reads an environment by. Nodes would be given empty catalogs
// of a version that has none of it.
func (m Manifest) IsControlRepository() bool {
	return slices.ContainsFunc(m.Files, func(f File) bool {
		top, _, _ := strings.Cut(f.Path, "/")
		return slices.Contains([]string{"manifests", "modules", "environment.conf", "hiera.yaml"}, top)
	})
}

// DefaultEngine asks at a deploy for the server's default.
const DefaultEngine = "default"

// engineForm is what an engine may be called.
var engineForm = regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,62}$`)

// CheckEngine tells whether an engine may be called so.
func CheckEngine(name string) error {
	if !engineForm.MatchString(name) {
		return fault.New(fault.Invalid, "engine %.80q: a name has 1 to 63 of a-z, 0-9, dot, hyphen and underscore, and begins with a letter", name)
	}
	return nil
}

// BaseModules is the directory of a version that holds modules from outside the
// environment.
const BaseModules = ".base_modules"
