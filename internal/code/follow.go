package code

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// LinksOut are the links of a directory that lead out of it, which a version cannot hold. It is the cause of a fault.Invalid
// of Build, which says the same. Whoever has the directory may let them be followed (BuildOptions.FollowLinks).
type LinksOut struct {
	Links []LinkOut // the first ones, in the order of their paths
	Count int       // of all
}

// LinkOut is a link that leads out of its environment.
type LinkOut struct {
	Path   string // below the environment's root
	Target string // what the link says
	Real   string // where it leads in the end; empty: to nothing
}

// shownLinks is how many links an error names.
const shownLinks = 3

func (e *LinksOut) Error() string {
	lines := make([]string, len(e.Links))
	for i, link := range e.Links {
		lines[i] = link.String()
	}
	text := strings.Join(lines, "; ")
	if more := e.Count - len(e.Links); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func (l LinkOut) String() string {
	switch l.Real {
	case "":
		return fmt.Sprintf("%s leads to %s, where nothing is", l.Path, l.Target)
	case l.Target:
		return fmt.Sprintf("%s leads to %s", l.Path, l.Target)
	}
	return fmt.Sprintf("%s leads to %s, that is %s", l.Path, l.Target, l.Real)
}

// Copy is what a link led to that was followed: its content is a part of the version.
type Copy struct {
	Path  string // of the link
	From  string // where the content lies
	Files int
}

// unplain takes a link that is not a plain path inside root. One that ends inside by a detour becomes plain; one that
// leads out is followed or noted.
func (b *builder) unplain(ctx context.Context, root, name, p string) error {
	target, err := os.Readlink(name)
	if err != nil {
		return unreadable(name, err)
	}
	link := LinkOut{Path: p, Target: target}
	info, err := os.Stat(name)
	if err == nil {
		link.Real, err = filepath.EvalSymlinks(name)
	}
	if link.Real != root && err == nil && isWithin(link.Real, root) {
		plain, err := filepath.Rel(filepath.Dir(name), link.Real)
		b.files = append(b.files, built{File{Path: p, Kind: Link, Target: filepath.ToSlash(plain)}, name})
		return err
	}
	if b.opt.FollowLinks {
		if err != nil {
			return fault.Wrap(fault.Invalid, err, "the link %s cannot be followed: it leads to %s, and that cannot be read; remove the link, or mend where it leads",
				name, target)
		}
		return b.follow(ctx, name, link, info)
	}
	if b.out.Count++; b.out.Count <= shownLinks {
		b.out.Links = append(b.out.Links, link)
	}
	return nil
}

// follow makes what a link leads to a part of the version, in the link's place.
func (b *builder) follow(ctx context.Context, name string, link LinkOut, info fs.FileInfo) error {
	before := len(b.files)
	if info.IsDir() {
		holder, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return unreadable(name, err)
		}
		b.within = append(b.within, holder)
		defer func() { b.within = b.within[:len(b.within)-1] }()
		for _, dir := range b.within {
			if isWithin(dir, link.Real) {
				return fault.New(fault.Invalid, "the link %s cannot be followed: it leads to %s, which holds the link itself, so there would be no end; remove the link",
					name, link.Real)
			}
		}
		if err := b.walk(ctx, link.Real, link.Path); err != nil {
			return err
		}
	} else if err := b.add(ctx, filepath.Dir(link.Real), link.Real, link.Path, fs.FileInfoToDirEntry(info)); err != nil {
		return err
	}
	if len(b.within) > 1 || len(b.within) == 1 && !info.IsDir() {
		return nil // the copy that this one is a part of counts it
	}
	copied := Copy{Path: link.Path, From: link.Real}
	for _, f := range b.files[before:] {
		if f.Kind != Dir {
			copied.Files++
		}
	}
	b.copied = append(b.copied, copied)
	return nil
}

// isWithin says whether dir is top or lies below it.
func isWithin(dir, top string) bool {
	return dir == top || strings.HasPrefix(dir, strings.TrimSuffix(top, "/")+"/")
}

// refuseLinks is the error for links that lead out and were not to be followed.
func (b *builder) refuseLinks() error {
	if b.out.Count == 0 {
		return nil
	}
	out := b.out
	verb := "links lead"
	if out.Count == 1 {
		verb = "link leads"
	}
	return fault.Wrap(fault.Invalid, &out, "%d %s out of the environment, and a version holds only what is in it: %s", out.Count, verb, out.Error())
}
