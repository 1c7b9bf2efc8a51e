package code

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// virtualRoot is where agents are told that environments lie.
const virtualRoot = "/etc/puppetlabs/code"

// unionMounts are those that join one directory of every module.
var unionMounts = map[string]string{
	"plugins":     "lib",
	"pluginfacts": "facts.d",
	"locales":     "locales",
}

// moduleMounts are those whose paths start with a module's name.
var moduleMounts = map[string]string{
	"modules": "files",
	"tasks":   "tasks",
	"scripts": "scripts",
}

// place is where a path of a mount leads: a node, and the path under which it
// was found (links not yet followed).
type place struct {
	node *node
	path string // below the environment's root
}

// Metadata describes the file, link or directory at a path of a mount; NotFound
// when nothing is there.
func (t *Tree) Metadata(ctx context.Context, mount, path string, opt MetadataOptions) (Metadata, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return Metadata{}, err
	}
	at, err := t.find(mount, path)
	if err != nil {
		return Metadata{}, err
	}
	return t.describe(ctx, at.node, t.virtual(at.path), nil, opt)
}

// Content finds the file whose bytes a path of a mount stands for; links are
// followed.
func (t *Tree) Content(mount, path string) (File, error) {
	at, err := t.find(mount, path)
	if err != nil {
		return File{}, err
	}
	return t.contentOf(t.follow(at.node), mount+"/"+path)
}

func (t *Tree) virtual(p string) string {
	root := virtualRoot + "/environments/" + string(t.env)
	if p == "" {
		return root
	}
	return root + "/" + p
}

// find finds one file. A link that leads nowhere is not found, as on a server
// that asks its file system whether the path exists.
func (t *Tree) find(mount, path string) (place, error) {
	path, err := cleanKey(path)
	if err != nil {
		return place{}, err
	}
	for _, dir := range t.searched(mount, &path) {
		at := place{node: t.lookup(t.root, dir), path: dir}
		if path != "" {
			at = place{node: t.lookup(t.root, dir+"/"+path), path: dir + "/" + path}
		}
		if t.follow(at.node) != nil {
			return at, nil
		}
	}
	return place{}, t.notFound(mount + "/" + path)
}

// searched lists the directories in which a mount looks for a path. For mounts
// of single modules it takes the module's name off the path.
func (t *Tree) searched(mount string, path *string) []string {
	if kind, ok := unionMounts[mount]; ok {
		dirs := make([]string, len(t.modules))
		for i, module := range t.modules {
			dirs[i] = module.Path + "/" + kind
		}
		return dirs
	}
	kind, ok := moduleMounts[mount]
	if !ok {
		return nil
	}
	name, rest, _ := strings.Cut(*path, "/")
	for _, module := range t.modules {
		if module.Name == name {
			*path = rest
			return []string{module.Path + "/" + kind}
		}
	}
	return nil
}

// cleanKey checks the part of a request's path behind the mount.
func cleanKey(key string) (string, error) {
	if len(key) > maxPathBytes {
		return "", fault.New(fault.Invalid, "the path has %d bytes, at most %d are allowed", len(key), maxPathBytes)
	}
	idle := 0 // names that mean nothing
	for name := range strings.SplitSeq(key, "/") {
		switch name {
		case "..":
			return "", fault.New(fault.Invalid, "the path %.200q holds \"..\"", key)
		case "", ".":
			idle++
		}
	}
	if idle == 0 { // as agents send it
		return key, nil
	}
	names := slices.DeleteFunc(strings.Split(key, "/"), func(name string) bool { return name == "" || name == "." })
	return strings.Join(names, "/"), nil
}

// describe tells what agents want to know of a node.
func (t *Tree) describe(ctx context.Context, n *node, base string, relative *string, opt MetadataOptions) (Metadata, error) {
	if opt.Links == followLinks {
		target := t.follow(n)
		if target == nil {
			return Metadata{}, fault.New(fault.Invalid, "the link %.200q leads nowhere and cannot be followed", n.path)
		}
		n = target
	}
	m := Metadata{
		Path: base, RelativePath: relative, Links: opt.Links, Mode: n.mode(opt.SourcePermissions),
		Checksum: Checksum{Type: opt.ChecksumType},
	}
	switch n.file.Kind {
	case Dir:
		m.Type = "directory"
		m.Checksum = Checksum{Type: "ctime", Value: &epoch}
		return m, nil
	case Link:
		m.Type, m.Destination = "link", &n.file.Target
		n = t.follow(n)
		if (n == nil || n.isDir()) && opt.ChecksumType != "none" {
			return m, nil // there is nothing to sum up
		}
	case Regular:
		m.Type = "file"
	}
	sum, err := t.checksum(ctx, n, opt.ChecksumType)
	m.Checksum.Value = &sum
	return m, err
}

func (t *Tree) checksum(ctx context.Context, n *node, name string) (string, error) {
	if name == "none" {
		return "{none}", nil
	}
	return t.checksums.of(ctx, n.file.Digest, name, t.at)
}

// epoch is the time of every directory. Agents do not look at it; a real one
// would make catalogs differ that are the same.
var epoch = "{ctime}1970-01-01 00:00:00 +0000"

// mode is a node's permissions. A server that is told to ignore those of its
// files says 0644 for everything, directories too.
func (n *node) mode(sourcePermissions string) int {
	switch {
	case sourcePermissions == "" || sourcePermissions == "ignore":
		return 0o644
	case n.file.Kind == Link:
		return 0o777
	case n.file.Kind == Dir || n.file.Executable:
		return 0o755
	default:
		return 0o644
	}
}
