package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/modules"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// modulesPath is where a server says which modules this node's code supplies; their files are below it.
const modulesPath = "/node/v1/modules"

// supplied keeps the modules that the code of this node's environment supplies: a directory with
//
//	current.json    which they are
//	<sha256>/NAME/  a version of one
type supplied struct {
	modules.Supplies
	servers []string
	client  *http.Client

	mu       sync.Mutex
	kept     keptSupply
	partial  bool             // some of it could not be fetched
	problems []action.Problem // modules that cannot be used
}

// keptSupply is what current.json holds.
type keptSupply struct {
	Supply action.Supply `json:"supply"`
	ETag   string        `json:"etag"`
}

const (
	suppliedDir    = "modules"
	maxSupplyBytes = 16 << 20
)

// newSupplied reads what an earlier agent kept. What cannot be read is asked for again.
func (d *daemon) newSupplied() (*supplied, error) {
	cfg := modulesConfig(d.Binary, d.ModulesConfig, d.log)
	cfg.Dir = filepath.Join(d.Data, suppliedDir)
	s := &supplied{
		Supplies: modules.Supplies{
			Config: cfg, Cache: d.cache,
			Source: func(file fleet.Digest) pxp.Source { return pxp.Source{Path: modulesPath + "/" + string(file)} },
		},
		servers: d.primaries(), client: d.filesClient(),
	}
	if err := makeDir(cfg.Dir); err != nil {
		return nil, err
	}
	if !d.EnvironmentModules {
		return s, nil
	}
	text, err := os.ReadFile(s.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return nil, unwritable(s.path(), err)
	}
	var kept keptSupply
	if err = json.Unmarshal(text, &kept); err == nil {
		_, err = action.ParseSupply(supplyText(kept.Supply))
	}
	if err != nil {
		d.log.Warn("which modules the environment's code supplies cannot be read; a server is asked", "err", err)
		return s, nil
	}
	s.kept = kept
	return s, nil
}

func supplyText(s action.Supply) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}

func (s *supplied) path() string { return filepath.Join(s.Dir, currentName) }

// load makes orders of what is kept.
func (s *supplied) load(ctx context.Context, fetch bool) ([]orders.Module, []action.Listed, error) {
	s.mu.Lock()
	supply := s.kept.Supply
	s.mu.Unlock()
	loaded, problems, err := s.Load(ctx, supply, fetch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems, s.partial = problems, err != nil
	listed := action.Unusable(problems)
	for i := range listed {
		listed[i].Provider = action.FromCode
	}
	return loaded, listed, err
}

// unusable are the modules that cannot be used.
func (s *supplied) unusable() []action.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// refresh asks the servers in turn. other: what this node has is, or may be, something else than before.
func (s *supplied) refresh(ctx context.Context) (other bool, err error) {
	s.mu.Lock()
	before, partial := s.kept, s.partial
	s.mu.Unlock()
	err = fault.New(fault.NotFound, "no server is set that has modules")
	var now *keptSupply
	for _, server := range s.servers {
		if now, err = s.ask(ctx, server, before.ETag); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil || now == nil {
		return partial && err == nil, err
	}
	text, err := json.Marshal(now)
	if err != nil {
		return false, err
	}
	if err := write(s.path(), text, 0o600); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.kept = *now
	s.mu.Unlock()
	return partial || now.Supply.Digest() != before.Supply.Digest(), nil
}

// ask asks one server; nil: it is as before.
func (s *supplied) ask(ctx context.Context, server, tag string) (*keptSupply, error) {
	status, header, text, err := get(ctx, s.client, server, modulesPath, tag, maxSupplyBytes, pointerTime)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusNotModified && tag != "":
		return nil, nil //nolint:nilnil // as before
	case status == http.StatusNotFound: // an older server, that supplies none
		return nil, nil //nolint:nilnil // as before
	case status != http.StatusOK:
		return nil, unexpected(server, modulesPath, status, text)
	}
	supply, err := action.ParseSupply(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "what %s says of the modules that this node's code supplies cannot be used: %s", server, fault.Detail(err))
	}
	return &keptSupply{supply, header.Get("ETag")}, nil
}

// keepSupplied has the modules that the environment's code supplies: after connecting, after a hint, and from time to time it asks whether they are
// others, and tells the server of them then.
func (d *daemon) keepSupplied(ctx context.Context) error {
	d.sweepSupplied(ctx)
	if !d.EnvironmentModules || len(d.primaries()) == 0 {
		return nil
	}
	pause, pauses := firstLook, pauses{poll: d.CatalogPoll}
	for ctx.Err() == nil {
		d.supplies.await(ctx, pause)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		err := d.refreshSupplied(ctx)
		if pause = pauses.next(err != nil); err == nil {
			d.sweepSupplied(ctx)
		} else if ctx.Err() == nil {
			d.log.WarnContext(ctx, "modules of the environment's code not refreshed, will retry", "err", err)
		}
	}
	return nil
}

func (d *daemon) refreshSupplied(ctx context.Context) error {
	other, err := d.supplied.refresh(ctx)
	if err != nil || !other {
		return err
	}
	loaded, problems, err := d.supplied.load(ctx, true)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.engine.Supply(loaded, problems)
	d.log.InfoContext(ctx, "modules of the environment's code are others", "usable", len(loaded), "not_usable", len(problems))
	d.introduce()
	return err
}

// sweepSupplied removes versions that do not belong to this node any more and that no program uses.
func (d *daemon) sweepSupplied(ctx context.Context) {
	records, err := d.spool.List()
	if err == nil {
		busy := map[string]bool{}
		for _, r := range records {
			busy[r.Module] = busy[r.Module] || !r.Status.Over()
		}
		d.supplied.mu.Lock()
		supply := d.supplied.kept.Supply
		d.supplied.mu.Unlock()
		err = d.supplied.Sweep(supply, func(module string) bool { return busy[module] })
	}
	if err != nil {
		d.log.WarnContext(ctx, "former modules of the environment's code not removed, will retry", "err", err)
	}
}
