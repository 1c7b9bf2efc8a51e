package agent

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Where a server answers a node about itself.
const (
	pointerPath  = "/node/v1/catalog"
	documentPath = "/node/v1/catalogs/"
)

// pointer asks what this node may have; nil: what it has already.
func (c *catalogs) pointer(ctx context.Context, server, tag string) (*pxp.CatalogPointer, string, error) {
	status, header, text, err := get(ctx, c.client, server, pointerPath, tag, maxPointerBytes, pointerTime)
	if err != nil {
		return nil, "", err
	}
	if status == http.StatusNotModified && tag != "" {
		return nil, "", nil
	}
	if status != http.StatusOK {
		return nil, "", unexpected(server, pointerPath, status, text)
	}
	p, err := pxp.ParseCatalogPointer(text)
	if err != nil {
		return nil, "", fault.New(fault.Invalid, "what %s says of this node's catalog cannot be used: %s", server, fault.Detail(err))
	}
	return &p, header.Get("ETag"), nil
}

// fetch gets a document, unless it is there.
func (c *catalogs) fetch(ctx context.Context, server, digest string) error {
	if intact(c.document(digest), digest) {
		return nil
	}
	status, _, text, err := get(ctx, c.client, server, documentPath+digest, "", maxDocumentBytes, documentTime)
	if err != nil {
		return err
	}
	if status != http.StatusOK { // not NotFound: the pointer said that it is there, and may have changed since
		return fault.New(fault.Unavailable, "%s", fault.Detail(unexpected(server, documentPath+digest, status, text)))
	}
	if err := checkDocument(text, digest); err != nil {
		return err
	}
	return write(c.document(digest), text, 0o600)
}

// get asks a server, within a time and a number of bytes.
func get(ctx context.Context, client *http.Client, server, path, tag string, most int64, limit time.Duration) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+path, http.NoBody)
	if err != nil {
		return 0, nil, nil, err
	}
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, nil, unreachable(ctx, server, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	switch {
	case err != nil:
		return 0, nil, nil, unreachable(ctx, server, err)
	case int64(len(text)) > most:
		return 0, nil, nil, fault.New(fault.Invalid, "what %s answers to %s has more than %d bytes", server, path, most)
	}
	return response.StatusCode, response.Header, text, nil
}

func unexpected(server, path string, status int, text []byte) error {
	if status == http.StatusNotFound {
		return fault.New(fault.NotFound, "%s has no catalog for this node", server)
	}
	return fault.New(fault.Unavailable, "%s answers %s with %d: %.200s", server, path, status, strings.ToValidUTF8(string(text), "?"))
}
