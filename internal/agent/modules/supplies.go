package modules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Supplies keeps the modules that code supplies, each version in a directory of its own: Dir/DIGEST/NAME/...
type Supplies struct {
	Config // Dir is where they are kept
	Cache  orders.Cache
	Source func(fleet.Digest) pxp.Source // where a file is fetched

	installing sync.Mutex

	mu        sync.Mutex
	answering map[string]int // questions that a version's programs answer now, by its name in Dir
}

// partPrefix begins the names of directories that are not complete.
const partPrefix = ".new-"

// Load makes orders of a supply's modules. Those that cannot be used are problems. With fetch it gets the files that are not here or not right;
// an error is of those that no server gave, and they are problems as well.
func (s *Supplies) Load(ctx context.Context, supply action.Supply, fetch bool) (loaded []orders.Module, problems []action.Problem, err error) {
	for _, m := range supply.Modules {
		one, wrong := s.load(ctx, m, fetch)
		if wrong == nil {
			loaded = append(loaded, one)
			continue
		}
		if fault.Of(wrong) == fault.Unavailable {
			err = errors.Join(err, wrong)
		}
		s.Log.ErrorContext(ctx, "module of the environment's code passed over, it cannot be used", "module", m.Name, "place", m.Place(), "err", wrong)
		problems = append(problems, action.Problem{Module: m.Name, Path: m.Place(), Reason: "from " + m.Place() + ": " + reason(wrong)})
	}
	return loaded, problems, err
}

func (s *Supplies) load(ctx context.Context, m action.Supplied, fetch bool) (orders.Module, error) {
	if m.Problem != "" {
		return orders.Module{}, errors.New(m.Problem)
	}
	if err := s.complete(ctx, m, fetch); err != nil {
		return orders.Module{}, err
	}
	f, err := folder(s.dir(m), m.Name)
	if err != nil {
		return orders.Module{}, err
	}
	f.provider = action.FromCode
	f.whole = func(ctx context.Context) error { return s.complete(ctx, m, true) }
	loaded, err := load(ctx, s.Config, f)
	for name, a := range loaded.Actions {
		if read := a.Read; read != nil {
			a.Read = func(ctx context.Context, o orders.Order) (jsontext.Value, error) {
				s.answers(m, 1)
				defer s.answers(m, -1)
				return read(ctx, o)
			}
			loaded.Actions[name] = a
		}
	}
	return loaded, err
}

// answers counts a question that a version begins or ends to answer: there is no record of it that would keep the version.
func (s *Supplies) answers(m action.Supplied, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answering == nil {
		s.answering = map[string]int{}
	}
	version := string(m.Digest())
	if s.answering[version] += by; s.answering[version] == 0 {
		delete(s.answering, version)
	}
}

func (s *Supplies) isAnswering(version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answering[version] > 0
}

func (s *Supplies) dir(m action.Supplied) string {
	return filepath.Join(s.Dir, string(m.Digest()), m.Name)
}

// complete sees to it that a version's files are here as they were deployed. One that was changed on this node is fetched again.
func (s *Supplies) complete(ctx context.Context, m action.Supplied, fetch bool) error {
	s.installing.Lock()
	defer s.installing.Unlock()
	dir := s.dir(m)
	wrong := damaged(dir, m.Files)
	if wrong == "" {
		return nil
	}
	if !fetch {
		return fault.New(fault.Unavailable, "its file %s is not here; it is fetched when a server is there", wrong)
	}
	if _, err := os.Stat(dir); err == nil {
		s.Log.WarnContext(ctx, "a file of a module that code supplies was changed on this node; the module is fetched again", "module", m.Name, "file", wrong)
	}
	if err := s.install(ctx, m, filepath.Dir(dir)); err != nil {
		return fault.Wrap(fault.Unavailable, err, "its files cannot be fetched: %s", reason(err))
	}
	if wrong = damaged(dir, m.Files); wrong != "" {
		return fault.New(fault.Unavailable, "its file %s is not what was deployed, though it was just fetched", wrong)
	}
	return nil
}

// install puts a version at its place, all at once.
func (s *Supplies) install(ctx context.Context, m action.Supplied, version string) error {
	if err := os.MkdirAll(s.Dir, 0o750); err != nil {
		return err
	}
	part, err := os.MkdirTemp(s.Dir, partPrefix)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(part) }() // it has its name by then, or is not wanted
	files := map[string]pxp.FileSource{}
	for _, f := range m.Files {
		files[f.Path] = pxp.FileSource{Filename: m.Name + "/" + f.Path, SHA256: string(f.Digest), URI: s.Source(f.Digest)}
	}
	if err := s.Cache.Install(ctx, filepath.Join(part, m.Name), files); err != nil {
		return err
	}
	if err := os.RemoveAll(version); err != nil {
		return err
	}
	return os.Rename(part, version)
}

// damaged is the first file that is not there with its content; empty: all are.
func damaged(dir string, files []action.SuppliedFile) string {
	for _, f := range files {
		if !intact(filepath.Join(dir, filepath.FromSlash(f.Path)), f) {
			return f.Path
		}
	}
	return ""
}

func intact(path string, want action.SuppliedFile) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != want.Size {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == string(want.Digest)
}

// Sweep removes the versions that a supply does not have. Those of modules that are busy, and those that answer a question, stay until another time.
func (s *Supplies) Sweep(supply action.Supply, busy func(module string) bool) error {
	s.installing.Lock()
	defer s.installing.Unlock()
	keep := map[string]bool{}
	for _, m := range supply.Modules {
		keep[string(m.Digest())] = true
	}
	versions, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, version := range versions {
		if keep[version.Name()] || !version.IsDir() || s.isAnswering(version.Name()) {
			continue
		}
		path := filepath.Join(s.Dir, version.Name())
		modules, wrong := os.ReadDir(path)
		used := false
		for _, m := range modules {
			used = used || busy(m.Name())
		}
		if wrong == nil && !used {
			wrong = os.RemoveAll(path)
		}
		err = errors.Join(err, wrong)
	}
	return err
}
