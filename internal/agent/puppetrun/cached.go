package puppetrun

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/tutti-project/tutti/internal/agent/puppetenv"
	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// maxDocumentBytes bounds a stored catalog.
const maxDocumentBytes = 256 << 20

// cachedArguments make puppet apply the catalog that is written for it, whatever its settings say.
func cachedArguments(args []string, c pxp.PuppetCatalog) []string {
	if !slices.Contains(args, "--use_cached_catalog") {
		args = append(args, "--use_cached_catalog")
	}
	if !slices.Contains(args, "--environment") {
		args = append(args, "--environment", c.Environment)
	}
	return append(args, "--catalog_cache_terminus", "json")
}

// cached is a catalog that is to be applied, and where Puppet looks for it.
type cached struct {
	pxp.PuppetCatalog
	path string
}

// cachedAt finds the place for a catalog: Puppet must be configured for the node that it is of.
func cachedAt(c pxp.PuppetCatalog, s puppetenv.Settings) (cached, error) {
	node, dir := s["node_name_value"], s["client_datadir"]
	switch {
	case node == "" || dir == "":
		return cached{}, errors.New("puppet agent --configprint names no node_name_value or client_datadir")
	case node != c.Node:
		return cached{}, fmt.Errorf("puppet is configured for %s, but the catalog is of %s; give both agents one certname", node, c.Node)
	}
	return cached{c, filepath.Join(dir, "catalog", node+".json")}, nil
}

// put writes the catalog where Puppet looks for it, from a document that is what its digest says at this moment.
func (c cached) put() error {
	document, err := readDocument(c.Document, c.Digest)
	if err != nil {
		return err
	}
	text, err := catalog.Render(document, catalog.Stamp{Version: fleet.Digest(c.Version), UUID: c.UUID, Static: true})
	if err != nil {
		return err
	}
	const puppetsMode = 0o660
	if err := os.MkdirAll(filepath.Dir(c.path), 0o750); err != nil {
		return err
	}
	return puppetenv.Replace(c.path, text, puppetsMode)
}

func readDocument(path, digest string) ([]byte, error) {
	document, err := puppetenv.ReadBounded(path, maxDocumentBytes)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(document); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%s is not what its digest says: it was changed, or is not whole", path)
	}
	return document, nil
}

// judge holds what was reported against the catalog that was to be applied. A run that ended before it applied
// anything reports none.
func (c cached) judge(results *pxp.PuppetResults, r report) {
	switch {
	case r.TransactionUUID == "": // there is no report
	case r.CatalogUUID == c.UUID && r.CodeID == c.Version:
		results.Catalog = c.Digest
	case r.CatalogUUID == "" && r.Status == "failed":
	default:
		results.ErrorType = pxp.OtherCatalog
		results.Error = fmt.Sprintf("Puppet applied the catalog %.100q of version %.100q, not %q of version %q", r.CatalogUUID, r.CodeID, c.UUID, c.Version)
	}
}
