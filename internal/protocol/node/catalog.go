package node

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// pointer says what a node may have.
func (h *Handler) pointer(w http.ResponseWriter, r *http.Request, node fleet.Certname) error {
	pointer, err := h.Deliveries.Pointer(r.Context(), node)
	if err != nil {
		return err
	}
	return tagged(w, r, pointer)
}

// tagged answers with JSON whose ETag stands for all that it says.
func tagged(w http.ResponseWriter, r *http.Request, answer any) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	w.Header().Set("Etag", `"`+string(fleet.DigestOf(body))[:32]+`"`)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "private, no-cache")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	return nil
}

// document sends a catalog as it is stored: the node checks its digest.
func (h *Handler) document(w http.ResponseWriter, r *http.Request, node fleet.Certname) error {
	ctx := r.Context()
	digest, err := fleet.ParseDigest(r.PathValue("digest"))
	if err != nil {
		return err
	}
	may, err := h.Deliveries.MayHave(ctx, node, digest)
	if err != nil {
		return err
	}
	if !may {
		return fault.New(fault.NotFound, "%s has no catalog %s; what it may have says %s/catalog", node, digest.Short(), Prefix)
	}
	return h.content(w, r, digest, "application/json")
}

// content sends a stored content.
func (h *Handler) content(w http.ResponseWriter, r *http.Request, digest fleet.Digest, mime string) error {
	ctx := r.Context()
	if err := h.turn(ctx); err != nil {
		return err
	}
	defer h.documents.Release(1)
	blob, err := h.Blobs.Open(ctx, digest)
	if err != nil {
		return err
	}
	defer func() { _ = blob.Close() }()
	w.Header().Set("Etag", `"`+string(digest)+`"`)
	w.Header().Set("Content-Type", mime)
	w.Header().Set("Cache-Control", "private, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	send(paced{w, control}, r, digest, blob)
	return nil
}

// How long a node waits for its turn, and when it may come back then.
const (
	turnWait = 10 * time.Second
	soonest  = 5 * time.Second
	latest   = 30 * time.Second
)

// turn waits for a place among those whose documents are sent.
func (h *Handler) turn(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, turnWait)
	defer cancel()
	if h.documents.Acquire(waiting, 1) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return later("all %d places for catalogs and files that are being sent are taken", maxDocuments)
}

// gzipFrom is the size from which compressing is worth it.
const gzipFrom = 1400

// send sends the document, compressed if the node takes that and has not got it.
func send(w http.ResponseWriter, r *http.Request, digest fleet.Digest, blob cas.Blob) {
	plain := blob.Size() < gzipFrom || r.Method == http.MethodHead || r.Header.Get("Range") != "" || !takesGzip(r)
	if plain || strings.Contains(r.Header.Get("If-None-Match"), string(digest)) {
		http.ServeContent(w, r, "", time.Time{}, blob)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	packer := packers.Get().(*gzip.Writer)
	defer packers.Put(packer)
	packer.Reset(w)
	if _, err := io.Copy(packer, blob); err == nil { // the node notices what broke off: the stream has no end
		_ = packer.Close()
	}
}

var packers = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return w
}}

func takesGzip(r *http.Request) bool {
	for word := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(word), ";")
		if (coding == "gzip" || coding == "*") && strings.TrimSpace(weight) != "q=0" {
			return true
		}
	}
	return false
}

// pieceTime is how long the next piece may take. A whole document may take long, as
// long as it is taken.
const pieceTime = time.Minute

type paced struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p paced) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(pieceTime)) // a connection that cannot has bounds of its own
	return p.ResponseWriter.Write(b)
}
