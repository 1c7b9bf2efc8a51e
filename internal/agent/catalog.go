package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/agent/files"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// catalogs keeps what this node may apply: a directory with
//
//	current.json    the newest pointer, and the digests of the documents that are kept
//	<sha256>.json   a document: the newest one, and a few before it
//
// A document is checked against its digest when it comes, whenever the server is asked, and before a run applies it.
type catalogs struct {
	dir     string
	node    string
	servers []string
	client  *http.Client
	log     *slog.Logger

	refreshing sync.Mutex // one at a time

	mu      sync.Mutex
	kept    keptCatalog
	asked   time.Time // when a server answered last
	problem string    // why none did the last time; empty: one did
}

// keptCatalog is what current.json holds.
type keptCatalog struct {
	pxp.CatalogPointer
	ETag    string    `json:"etag"`
	Fetched time.Time `json:"fetched"` // when this pointer came
	Earlier []string  `json:"earlier"` // digests, newest first
}

const (
	currentName = "current.json"
	// earlierCatalogs are kept beside the newest one: for people to look at, and a server that goes back.
	earlierCatalogs = 2

	maxPointerBytes  = 64 << 10
	maxDocumentBytes = 256 << 20
	pointerTime      = 30 * time.Second
	documentTime     = 10 * time.Minute
)

// open reads what an earlier agent kept. What cannot be read is fetched again.
func (c *catalogs) open() error {
	if err := makeDir(c.dir); err != nil {
		return err
	}
	text, err := os.ReadFile(c.path(currentName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unwritable(c.path(currentName), err)
	}
	var kept keptCatalog
	if err = json.Unmarshal(text, &kept); err == nil {
		_, err = pxp.ParseCatalogPointer(text)
	}
	if err != nil {
		c.log.Warn("the kept catalog's pointer cannot be read; it is fetched again", "err", err)
		return nil
	}
	c.kept = kept
	return nil
}

func (c *catalogs) path(name string) string { return filepath.Join(c.dir, name) }

func (c *catalogs) document(digest string) string { return c.path(digest + ".json") }

// Current is what a run applies; nil: there is none.
func (c *catalogs) Current() *pxp.PuppetCatalog {
	kept := c.now()
	if kept.Catalog == "" {
		return nil
	}
	return &pxp.PuppetCatalog{
		Document: c.document(kept.Catalog), Digest: kept.Catalog, Node: c.node, Environment: kept.Environment, Version: kept.Version, UUID: kept.UUID,
	}
}

func (c *catalogs) now() keptCatalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept
}

// Refresh asks the servers in turn what this node may have, and fetches it. What is kept stays when none of them
// answers, and when what they give is not right. NotFound: there is no catalog for this node yet.
func (c *catalogs) Refresh(ctx context.Context) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	err := fault.New(fault.NotFound, "no server is set that has catalogs")
	for _, server := range c.servers {
		if err = c.refreshFrom(ctx, server); err == nil || fault.Of(err) == fault.NotFound || ctx.Err() != nil {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.problem = ""; err != nil {
		c.problem = fault.Detail(err)
	} else {
		c.asked = time.Now().UTC()
	}
	return err
}

func (c *catalogs) refreshFrom(ctx context.Context, server string) error {
	kept := c.now()
	whole := kept.Catalog != "" && intact(c.document(kept.Catalog), kept.Catalog)
	tag := ""
	if whole {
		tag = kept.ETag
	} else if kept.Catalog != "" {
		c.log.WarnContext(ctx, "the kept catalog is damaged; it is fetched again", "catalog", kept.Catalog)
	}
	pointer, tag, err := c.pointer(ctx, server, tag)
	if err != nil || pointer == nil {
		return err
	}
	if pointer.Catalog != kept.Catalog || !whole {
		if err := c.fetch(ctx, server, pointer.Catalog); err != nil {
			return err
		}
	}
	return c.keep(ctx, *pointer, tag)
}

// keep makes a pointer the current one, and forgets documents that are too old.
func (c *catalogs) keep(ctx context.Context, p pxp.CatalogPointer, tag string) error {
	before := c.now()
	fresh := keptCatalog{CatalogPointer: p, ETag: tag, Fetched: time.Now().UTC(), Earlier: before.Earlier}
	if before.Catalog != "" && before.Catalog != p.Catalog {
		fresh.Earlier = append([]string{before.Catalog}, fresh.Earlier...)
	}
	fresh.Earlier = slices.DeleteFunc(slices.Clone(fresh.Earlier), func(d string) bool { return d == p.Catalog })
	fresh.Earlier = slices.Compact(fresh.Earlier[:min(len(fresh.Earlier), earlierCatalogs)])
	text, err := json.Marshal(fresh)
	if err != nil {
		return err
	}
	if err := write(c.path(currentName), text, 0o600); err != nil {
		return err
	}
	c.mu.Lock()
	c.kept = fresh
	c.mu.Unlock()
	c.log.InfoContext(ctx, "catalog kept", "catalog", p.Catalog, "mode", p.Mode, "generation", p.Generation, "environment", p.Environment, "version", p.Version)
	c.sweep(ctx, fresh)
	return nil
}

// sweep removes documents that are not kept any more, and what is left of writing them.
func (c *catalogs) sweep(ctx context.Context, kept keptCatalog) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		c.log.WarnContext(ctx, "old catalogs not removed", "err", err)
		return
	}
	wanted := append([]string{kept.Catalog}, kept.Earlier...)
	for _, entry := range entries {
		digest, isDocument := strings.CutSuffix(entry.Name(), ".json")
		if entry.Name() == currentName || isDocument && slices.Contains(wanted, digest) || !isDocument && !strings.HasPrefix(entry.Name(), newPrefix) {
			continue
		}
		if err := os.Remove(c.path(entry.Name())); err != nil {
			c.log.WarnContext(ctx, "old catalog not removed", "err", err)
		}
	}
}

// intact tells that a file has the content of a digest.
func intact(path, digest string) bool {
	has, err := files.Has(path, digest)
	return err == nil && has
}

// checkDocument holds what a server gave against the digest that was asked for.
func checkDocument(document []byte, digest string) error {
	if sum := sha256.Sum256(document); hex.EncodeToString(sum[:]) != digest {
		return fault.New(fault.Invalid, "what came for the catalog %s has another digest; it is refused", digest)
	}
	if _, _, err := catalog.Split(document); err != nil {
		return fault.New(fault.Invalid, "what came for the catalog %s is no catalog; it is refused", digest)
	}
	return nil
}
