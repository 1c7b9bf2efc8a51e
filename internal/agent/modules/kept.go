package modules

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/ddl"
	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/fault"
)

// state is a module as it was read.
type state struct {
	described     action.Module
	configuration jsontext.Value // pxp-agent's contract; nil: none
	stamps        []stamp
}

// stamp is a file as it was when it was looked at; nil: it was not there.
type stamp struct{ info fs.FileInfo }

func look(path string) (stamp, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return stamp{}, nil
	}
	return stamp{info}, err
}

// same says whether the file is the one that it was.
func (s stamp) same(other stamp) bool {
	if s.info == nil || other.info == nil {
		return s.info == nil && other.info == nil
	}
	return os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime()) &&
		s.info.Mode() == other.info.Mode()
}

// files are what a module is made of.
func (f found) files(cfg Config) []string {
	switch {
	case f.ddl != "":
		return []string{f.program, f.ddl}
	case f.metadata != "":
		return []string{f.program, f.metadata, f.conf(cfg)}
	}
	return []string{f.program, f.conf(cfg)}
}

func (f found) conf(cfg Config) string { return filepath.Join(cfg.ConfigDir, f.name+".conf") }

func (f found) look(cfg Config) (stamps []stamp, err error) {
	for _, path := range f.files(cfg) {
		s, err := look(path)
		if err != nil {
			return nil, err
		}
		stamps = append(stamps, s)
	}
	return stamps, nil
}

// read looks at the files, and then reads what the module says of itself.
func (f found) read(ctx context.Context, cfg Config) (s state, err error) {
	if s.stamps, err = f.look(cfg); err != nil {
		return s, err
	}
	if f.ddl != "" {
		s.described, err = f.readDDL(ctx, cfg)
		return s, err
	}
	text, err := f.metadataText(ctx)
	if err != nil {
		return s, err
	}
	if s.described, err = action.Parse(f.name, text); err != nil {
		return s, err
	}
	s.described.Provider = cmp.Or(f.provider, action.External)
	if s.configuration, err = readConfiguration(f.conf(cfg)); err != nil || s.configuration == nil {
		return s, err
	}
	return s, checkConfiguration(s.described, s.configuration)
}

// metadataText is what the module says of itself: its file, or the program.
func (f found) metadataText(ctx context.Context) ([]byte, error) {
	if f.metadata != "" {
		return puppetenv.ReadBounded(f.metadata, action.MaxMetadataBytes)
	}
	return ask(ctx, f.program)
}

// readDDL reads Choria's description, and asks the program whether it wants to be used.
func (f found) readDDL(ctx context.Context, cfg Config) (described action.Module, err error) {
	text, err := puppetenv.ReadBounded(f.ddl, action.MaxMetadataBytes)
	if err != nil {
		return described, err
	}
	translated, err := ddl.JSON(f.name, text)
	if err != nil {
		return described, fault.Wrap(fault.Invalid, err, "%s: %s", f.ddl, fault.Detail(err))
	}
	for _, w := range translated.Warnings {
		if w.Unchecked {
			return described, fault.New(fault.Invalid, "%s: %s; the program would be given what its DDL does not allow", f.ddl, w)
		}
	}
	described = translated.Module
	described.Provider = action.Choria
	return described, f.activate(ctx, cfg)
}

// kept is a module that is loaded.
type kept struct {
	cfg   Config
	found found

	mu  sync.Mutex
	now state
}

// fresh is the module as it is on the disk now. One that was changed and describes itself as before is as good as the former one.
func (k *kept) fresh(ctx context.Context) (state, error) {
	k.mu.Lock()
	before := k.now
	k.mu.Unlock()
	if k.found.whole != nil {
		if err := k.found.whole(ctx); err != nil {
			return before, err
		}
	}
	stamps, err := k.found.look(k.cfg)
	if err == nil && same(before.stamps, stamps) {
		return before, nil
	}
	var after state
	if err == nil {
		after, err = k.found.read(ctx, k.cfg)
	}
	if err != nil {
		return before, fault.Wrap(fault.Unavailable, err, "the module %s was changed on this node and cannot be used any more: %s", k.found.name, reason(err))
	}
	if after.described.Digest() != before.described.Digest() {
		return before,
			fault.New(fault.Unavailable, "the module %s was changed on this node and describes itself otherwise now; restart the node's agent, which loads it anew",
				k.found.name)
	}
	k.mu.Lock()
	k.now = after
	k.mu.Unlock()
	k.cfg.Log.InfoContext(ctx, "module was changed on the disk and describes itself as before; it is loaded anew", "module", k.found.name)
	return after, nil
}

func same(a, b []stamp) bool {
	for i := range a {
		if !a[i].same(b[i]) {
			return false
		}
	}
	return true
}
