package code

import (
	"bytes"
	"encoding/json"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// The bounds of a manifest.
const (
	MaxFiles         = 200_000
	MaxFileBytes     = 2 << 30
	MaxManifestBytes = 128 << 20
	maxPathBytes     = 4096
	maxNameBytes     = 255
	maxModulePath    = 100
)

// Encode returns a manifest's canonical form: JSON without white space, keys in
// the order of the type, files sorted by path. The digest of these bytes names
// the version.
func (m Manifest) Encode() ([]byte, error) {
	if m.ModulePath == nil {
		m.ModulePath = []string{}
	}
	if m.Files == nil {
		m.Files = []File{}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// VersionOf names the version that a manifest describes.
func VersionOf(m Manifest) (VersionID, error) {
	canonical, err := m.Encode()
	if err != nil {
		return "", err
	}
	return fleet.DigestOf(canonical), nil
}

// Size is the sum of the files' bytes.
func (m Manifest) Size() int64 {
	var sum int64
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// ParseManifest reads a manifest and checks it.
func ParseManifest(text []byte) (Manifest, error) {
	if len(text) > MaxManifestBytes {
		return Manifest{}, fault.New(fault.Invalid, "the manifest has %d bytes, at most %d are allowed", len(text), MaxManifestBytes)
	}
	if !utf8.Valid(text) {
		return Manifest{}, fault.New(fault.Invalid, "the manifest is not UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var m Manifest
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, fault.Wrap(fault.Invalid, err, "the manifest is not the JSON it should be")
	}
	if _, err := dec.Token(); err != io.EOF {
		return Manifest{}, fault.New(fault.Invalid, "the manifest is followed by something else")
	}
	return m, m.Check()
}

// Check tells whether a manifest keeps the rules: paths are clean and stay
// inside, sorted and unique; nothing is both a file and a directory; only empty
// directories are listed; links stay inside; counts and sizes are bounded.
func (m Manifest) Check() error {
	if len(m.Files) > MaxFiles {
		return fault.New(fault.Invalid, "the version has %d files, at most %d are allowed", len(m.Files), MaxFiles)
	}
	if err := checkModulePath(m.ModulePath); err != nil {
		return err
	}
	if m.Engine != "" {
		if err := CheckEngine(m.Engine); err != nil {
			return err
		}
	}
	leaves := make(map[string]struct{}, len(m.Files))
	for i, f := range m.Files {
		if i > 0 && m.Files[i-1].Path >= f.Path {
			return fault.New(fault.Invalid, "file %d of the manifest, %.200q, is not sorted after %.200q", i, f.Path, m.Files[i-1].Path)
		}
		if err := f.check(); err != nil {
			return err
		}
		leaves[f.Path] = struct{}{}
	}
	for _, f := range m.Files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if _, ok := leaves[dir]; ok {
				return fault.New(fault.Invalid, "%.200q is listed, and so is %.200q below it", dir, f.Path)
			}
		}
	}
	return nil
}

func checkModulePath(dirs []string) error {
	if len(dirs) > maxModulePath {
		return fault.New(fault.Invalid, "the module path has %d entries, at most %d are allowed", len(dirs), maxModulePath)
	}
	seen := make(map[string]bool, len(dirs))
	for _, dir := range dirs {
		if err := CheckPath(dir); err != nil {
			return err
		}
		if seen[dir] {
			return fault.New(fault.Invalid, "the module path names %.200q twice", dir)
		}
		seen[dir] = true
	}
	return nil
}

func (f File) check() error {
	if err := CheckPath(f.Path); err != nil {
		return err
	}
	switch f.Kind {
	case Regular:
		return f.checkRegular()
	case Dir:
		if f.Digest != "" || f.Size != 0 || f.Executable || f.Target != "" {
			return fault.New(fault.Invalid, "the directory %.200q has more than a path", f.Path)
		}
		return nil
	case Link:
		if f.Digest != "" || f.Size != 0 || f.Executable {
			return fault.New(fault.Invalid, "the link %.200q has more than a target", f.Path)
		}
		return checkTarget(f.Path, f.Target)
	default:
		return fault.New(fault.Invalid, "%.200q is of the unknown kind %.40q", f.Path, f.Kind)
	}
}

func (f File) checkRegular() error {
	if _, err := fleet.ParseDigest(string(f.Digest)); err != nil {
		return fault.Wrap(fault.Invalid, err, "the digest of %.200q is none", f.Path)
	}
	if f.Size < 0 || f.Size > MaxFileBytes {
		return fault.New(fault.Invalid, "%.200q has %d bytes, at most %d are allowed", f.Path, f.Size, int64(MaxFileBytes))
	}
	if f.Target != "" {
		return fault.New(fault.Invalid, "the file %.200q has a link's target", f.Path)
	}
	return nil
}

// CheckPath checks a path below an environment's root: relative, clean, with
// slashes, without dots that lead elsewhere, and nothing of git's own.
func CheckPath(p string) error {
	switch {
	case p == "":
		return fault.New(fault.Invalid, "a path is empty")
	case len(p) > maxPathBytes:
		return fault.New(fault.Invalid, "the path %.80q... has %d bytes, at most %d are allowed", p, len(p), maxPathBytes)
	case !utf8.ValidString(p):
		return fault.New(fault.Invalid, "the path %.200q is not UTF-8", p)
	case strings.ContainsAny(p, "\x00\\"):
		return fault.New(fault.Invalid, "the path %.200q holds a zero byte or a backslash", p)
	case p[0] == '/' || p != path.Clean(p) || p == ".":
		return fault.New(fault.Invalid, "the path %.200q is not a clean relative path", p)
	}
	for name := range strings.SplitSeq(p, "/") {
		if name == ".." || name == ".git" {
			return fault.New(fault.Invalid, "the path %.200q holds the name %q", p, name)
		}
		if len(name) > maxNameBytes {
			return fault.New(fault.Invalid, "a name in the path %.80q... has %d bytes, at most %d are allowed", p, len(name), maxNameBytes)
		}
	}
	return nil
}

// checkTarget checks that a link stays inside. Only leading ".." are allowed: a
// ".." behind a name could leave through another link.
func checkTarget(link, target string) error {
	switch {
	case target == "" || len(target) > maxPathBytes || !utf8.ValidString(target) || strings.ContainsAny(target, "\x00\\"):
		return fault.New(fault.Invalid, "the link %.200q has no valid target", link)
	case target[0] == '/':
		return fault.New(fault.Invalid, "the link %.200q leads to %.200q, which is not relative", link, target)
	case target != path.Clean(target):
		return fault.New(fault.Invalid, "the link %.200q leads to %.200q, which is not a clean path", link, target)
	}
	if leaves(path.Join(path.Dir(link), target)) {
		return fault.New(fault.Invalid, "the link %.200q leads to %.200q, outside of the environment", link, target)
	}
	return nil
}

func leaves(p string) bool { return p == ".." || strings.HasPrefix(p, "../") }
