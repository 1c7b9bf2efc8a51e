package code

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// BuildOptions says how a directory becomes a version.
type BuildOptions struct {
	// BaseModulePath is what $basemodulepath stands for.
	BaseModulePath []string
	// Variables are further names that environment.conf may use behind a dollar
	// sign, such as codedir.
	Variables map[string]string
	// MaxFiles and MaxFileBytes lower the bounds; zero means the constants' values.
	MaxFiles     int
	MaxFileBytes int64
	// FollowLinks makes what links out of the environment lead to a part of the
	// version. It is for directories of whoever asks: a link of somebody else's
	// repository could name any file here.
	FollowLinks bool
	// Enclosed refuses an environment.conf whose module path leads out of the
	// directory: somebody else wrote it, and could name any directory here.
	Enclosed bool
}

// Bundle is a version that was built from a directory: its manifest, and a way
// to its content. The directory must stay as it is until the content is stored.
// A Bundle may be used concurrently.
type Bundle struct {
	Manifest Manifest
	Copied   []Copy                  // links that were followed
	files    map[fleet.Digest]string // one place for each content
}

// Open opens the content of one of the manifest's files.
func (b *Bundle) Open(d fleet.Digest) (io.ReadCloser, error) {
	name, ok := b.files[d]
	if !ok {
		return nil, fault.New(fault.NotFound, "no file has the digest %s", d.Short())
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	return f, nil
}

// Digests lists the manifest's contents, each once, in the order of its files.
func (m Manifest) Digests() []fleet.Digest {
	seen := make(map[fleet.Digest]bool, len(m.Files))
	var ds []fleet.Digest
	for _, f := range m.Files {
		if f.Kind == Regular && !seen[f.Digest] {
			seen[f.Digest] = true
			ds = append(ds, f.Digest)
		}
	}
	return ds
}

// Upload stores what a store does not have yet and returns how much that was.
func (b *Bundle) Upload(ctx context.Context, blobs cas.Store) (stored int, err error) {
	missing, err := blobs.Missing(ctx, b.Manifest.Digests())
	if err != nil {
		return 0, err
	}
	return len(missing), cas.PutAll(ctx, blobs, b.sources(missing))
}

func (b *Bundle) sources(ds []fleet.Digest) iter.Seq[cas.Source] {
	return func(yield func(cas.Source) bool) {
		for _, d := range ds {
			if !yield(cas.Source{Digest: d, Open: func() (io.ReadCloser, error) { return b.Open(d) }}) {
				return
			}
		}
	}
}

// Build reads an environment's directory. What git keeps for itself is left out;
// the module path is followed, and directories of modules outside the
// environment become part of the version.
//
// Invalid, naming the path, for what cannot be part of a version: files that
// cannot be read or are neither file, directory nor link, links that lead
// outside (LinksOut), names that are not UTF-8, too many or too large files.
func Build(ctx context.Context, dir string, opt BuildOptions) (*Bundle, error) {
	root, err := realDir(dir)
	if err != nil {
		return nil, err
	}
	modulePath, err := moduleDirs(root, opt)
	if err != nil {
		return nil, err
	}
	b := &builder{opt: opt.withDefaults()}
	if err := b.walk(ctx, root, ""); err != nil {
		return nil, err
	}
	entries, err := b.addModulePath(ctx, modulePath)
	if err != nil {
		return nil, err
	}
	if err := b.refuseLinks(); err != nil {
		return nil, err
	}
	return b.finish(ctx, entries)
}

func (o BuildOptions) withDefaults() BuildOptions {
	if o.MaxFiles <= 0 || o.MaxFiles > MaxFiles {
		o.MaxFiles = MaxFiles
	}
	if o.MaxFileBytes <= 0 || o.MaxFileBytes > MaxFileBytes {
		o.MaxFileBytes = MaxFileBytes
	}
	return o
}

func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", unreadable(dir, err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", unreadable(dir, err)
	}
	if !info.IsDir() {
		return "", fault.New(fault.Invalid, "%s is not a directory", dir)
	}
	return resolved, nil
}

// unreadable names the path; the operating system's words are safe to show to
// the one who named the directory.
func unreadable(name string, err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return fault.Wrap(fault.Invalid, err, "%s cannot be read: %s", name, err.Error())
}

// builder collects entries and where their content lies.
type builder struct {
	opt    BuildOptions
	files  []built
	out    LinksOut
	within []string // the directories that hold the links which are being followed
	copied []Copy
}

type built struct {
	File
	source string
}

// addModulePath captures modules from outside and returns the version's module path.
func (b *builder) addModulePath(ctx context.Context, dirs []moduleDir) ([]string, error) {
	entries := make([]string, 0, len(dirs))
	outside := 0
	for _, dir := range dirs {
		if dir.abs == "" {
			entries = append(entries, dir.rel)
			continue
		}
		prefix := fmt.Sprintf("%s/%d", BaseModules, outside)
		outside++
		entries = append(entries, prefix)
		if err := b.addModules(ctx, dir.abs, prefix); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// addModules captures the modules of a directory. Distributions install them as
// links to where they really are, so these links are followed.
func (b *builder) addModules(ctx context.Context, dir, prefix string) error {
	children, err := os.ReadDir(dir)
	if err != nil {
		return unreadable(dir, err)
	}
	for _, child := range children {
		name := filepath.Join(dir, child.Name())
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() || !isModuleName(child.Name()) {
			continue
		}
		root, err := realDir(name)
		if err != nil {
			return err
		}
		if err := b.walk(ctx, root, prefix+"/"+child.Name()); err != nil {
			return err
		}
	}
	return nil
}

// walk captures what lies below root as prefix/...
func (b *builder) walk(ctx context.Context, root, prefix string) error {
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(name, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if entry.Name() == ".git" {
			return skip(entry)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		p := path.Join(prefix, filepath.ToSlash(rel))
		if prefix == "" && rel == BaseModules {
			return fault.New(fault.Invalid, "%s: the name %s is reserved", name, BaseModules)
		}
		if rel == "." && prefix == "" {
			return nil
		}
		return b.add(ctx, root, name, p, entry)
	})
}

func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (b *builder) add(ctx context.Context, root, name, p string, entry fs.DirEntry) error {
	if err := CheckPath(p); err != nil {
		return err
	}
	if len(b.files) >= 2*b.opt.MaxFiles { // directories are among them still
		return b.tooMany()
	}
	f := File{Path: p}
	switch mode := entry.Type(); {
	case mode.IsRegular():
		info, err := entry.Info()
		if err != nil {
			return unreadable(name, err)
		}
		if info.Size() > b.opt.MaxFileBytes {
			return fault.New(fault.Invalid, "%s has %d bytes, at most %d are allowed", name, info.Size(), b.opt.MaxFileBytes)
		}
		f.Executable = info.Mode()&0o100 != 0
	case mode.IsDir():
		f.Kind = Dir
	case mode == fs.ModeSymlink:
		target, inside, err := linkTarget(root, name)
		if err != nil {
			return err
		}
		if !inside {
			return b.unplain(ctx, root, name, p)
		}
		f.Kind, f.Target = Link, target
	default:
		return fault.New(fault.Invalid, "%s is neither a file, a directory nor a link", name)
	}
	b.files = append(b.files, built{f, name})
	return nil
}

func (b *builder) tooMany() error {
	return fault.New(fault.Invalid, "the version has more than %d files", b.opt.MaxFiles)
}

// linkTarget reads a link, and says whether it is a plain path inside root. A target that
// is absolute but inside becomes relative.
func linkTarget(root, name string) (target string, inside bool, err error) {
	if target, err = os.Readlink(name); err != nil {
		return "", false, unreadable(name, err)
	}
	if filepath.IsAbs(target) {
		if target, err = filepath.Rel(filepath.Dir(name), target); err != nil {
			return "", false, unreadable(name, err)
		}
	}
	target = strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(target), "./"), "/")
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return "", false, err
	}
	return target, checkTarget(filepath.ToSlash(rel), target) == nil, nil
}

// finish sums up the files and puts the manifest in order.
func (b *builder) finish(ctx context.Context, modulePath []string) (*Bundle, error) {
	b.dropFilledDirs()
	if len(b.files) > b.opt.MaxFiles {
		return nil, b.tooMany()
	}
	if err := b.digest(ctx); err != nil {
		return nil, err
	}
	slices.SortFunc(b.files, func(x, y built) int { return cmp.Compare(x.Path, y.Path) })
	bundle := &Bundle{Manifest: Manifest{ModulePath: modulePath, Files: make([]File, len(b.files))}, Copied: b.copied, files: map[fleet.Digest]string{}}
	for i, f := range b.files {
		bundle.Manifest.Files[i] = f.File
		if f.Kind == Regular {
			bundle.files[f.Digest] = f.source
		}
	}
	return bundle, bundle.Manifest.Check()
}

// dropFilledDirs leaves only the directories that nothing lies in: the others
// are implied by their files.
func (b *builder) dropFilledDirs() {
	filled := map[string]bool{}
	for _, f := range b.files {
		filled[path.Dir(f.Path)] = true
	}
	b.files = slices.DeleteFunc(b.files, func(f built) bool { return f.Kind == Dir && filled[f.Path] })
}

func (b *builder) digest(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	buffers := sync.Pool{New: func() any { return new([64 << 10]byte) }}
	for i := range b.files {
		f := &b.files[i]
		if f.Kind != Regular {
			continue
		}
		group.Go(func() error {
			buf := buffers.Get().(*[64 << 10]byte)
			defer buffers.Put(buf)
			return f.digest(ctx, buf[:], b.opt.MaxFileBytes)
		})
	}
	return group.Wait()
}

func (f *built) digest(ctx context.Context, buf []byte, limit int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r, err := os.Open(f.source)
	if err != nil {
		return unreadable(f.source, err)
	}
	defer func() { _ = r.Close() }()
	h := sha256.New()
	f.Size, err = io.CopyBuffer(h, onlyReader{io.LimitReader(contextReader{ctx, r}, limit+1)}, buf)
	if err != nil {
		return unreadable(f.source, err)
	}
	if f.Size > limit {
		return fault.New(fault.Invalid, "%s has more than %d bytes", f.source, limit)
	}
	f.Digest = fleet.Digest(hex.EncodeToString(h.Sum(nil)))
	return nil
}

// onlyReader hides what would make a copy pass by its buffer.
type onlyReader struct{ io.Reader }
