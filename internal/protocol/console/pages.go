package console

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed all:dist
var built embed.FS

// dist is the built files.
var dist, _ = fs.Sub(built, "dist")

// nonceMark is where index.html has the nonce of its answer.
const nonceMark = "__NONCE__"

// pages is the built files, ready to be sent.
type pages struct {
	index  string
	assets map[string]*asset // by path: /assets/NAME
}

// asset is a file whose name says what is in it: it never changes.
type asset struct {
	mime    string
	whole   []byte
	packing sync.Once
	packed  []byte // by gzip; empty: it would be no smaller
}

func readPages(files fs.FS) (*pages, error) {
	index, err := fs.ReadFile(files, "index.html")
	if err != nil {
		return nil, fmt.Errorf("the console is not built; run `make console`: %w", err)
	}
	p := &pages{index: string(index), assets: map[string]*asset{}}
	if !strings.Contains(p.index, nonceMark) {
		return nil, fmt.Errorf("the console's index.html has no place for a nonce, %s", nonceMark)
	}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		return nil, fmt.Errorf("the console is not built; run `make console`: %w", err)
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(files, "assets/"+entry.Name())
		if err != nil {
			return nil, err
		}
		p.assets["/assets/"+entry.Name()] = &asset{mime: mimeOf(entry.Name()), whole: content}
	}
	return p, nil
}

// mimeOf is the type of a file; what a machine has in its tables does not matter.
func mimeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	}
	if known := mime.TypeByExtension(path.Ext(name)); known != "" {
		return known
	}
	return "application/octet-stream"
}

// page answers every address that is no file: the page itself reads the address.
func (p *pages) page(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "pages are only read; the API is below /api/v1", http.StatusMethodNotAllowed)
		return
	}
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	nonce := base64.RawStdEncoding.EncodeToString(bits[:])
	head := w.Header()
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Cache-Control", "no-cache")
	head.Set("Content-Security-Policy", "default-src 'self'; script-src 'self'; style-src 'self' 'nonce-"+nonce+"'; img-src 'self' data:; "+
		"connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	_, _ = w.Write([]byte(strings.ReplaceAll(p.index, nonceMark, nonce))) // the caller is gone if this fails
}

// asset answers with a file.
func (p *pages) asset(w http.ResponseWriter, r *http.Request) {
	file := p.assets[r.URL.Path]
	if file == nil {
		w.Header().Set("Cache-Control", "no-store") // a page of an older server asks; the next one may have it again
		http.Error(w, "there is no such file; reload the page: the server was changed", http.StatusNotFound)
		return
	}
	head := w.Header()
	head.Set("Content-Type", file.mime)
	head.Set("Cache-Control", "public, max-age=31536000, immutable")
	head.Set("Vary", "Accept-Encoding")
	body := file.whole
	if packed := file.smaller(); len(packed) > 0 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		head.Set("Content-Encoding", "gzip")
		body = packed
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the caller is gone if this fails
}

// smaller is the file, packed when it is asked for first.
func (a *asset) smaller() []byte {
	a.packing.Do(func() {
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is right
		_, _ = z.Write(a.whole)                                    // memory does not fail
		_ = z.Close()
		if packed.Len() < len(a.whole) {
			a.packed = packed.Bytes()
		}
	})
	return a.packed
}
