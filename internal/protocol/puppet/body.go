package puppet

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// bounded reads at most limit bytes and then fails with the given problem,
// instead of pretending that the body ended.
type bounded struct {
	r    io.Reader
	left int64
	err  error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more than allowed, to see whether there is more
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, b.err
	}
	return n, err
}

var gzipReaders sync.Pool

// body opens the request's body: decompressed, bounded after that, and with a
// clear error when it ends early or takes too long. closing gives back what was
// borrowed.
func (c *call) body(what string, limit int64, patience time.Duration) (body io.Reader, closing func(), err error) {
	closing = func() {}
	c.readDeadline(patience)
	var src io.Reader = &incoming{r: c.r.Body, what: what}
	switch encoding := strings.ToLower(c.r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		if c.r.ContentLength > limit {
			return nil, closing, tooLarge(what, limit)
		}
	case "gzip", "x-gzip":
		z, err := gunzip(src)
		if err != nil {
			return nil, closing, unzipError(what, err)
		}
		closing = func() { gzipReaders.Put(z) }
		src = &unzipped{r: z, what: what}
	default:
		return nil, closing, problemf(http.StatusUnsupportedMediaType, unsupportedMediaType,
			"the content encoding '%.40s' is not supported; send gzip or none", printable(encoding))
	}
	return &bounded{r: src, left: limit, err: tooLarge(what, limit)}, closing, nil
}

func gunzip(r io.Reader) (*gzip.Reader, error) {
	if z, ok := gzipReaders.Get().(*gzip.Reader); ok {
		return z, z.Reset(r)
	}
	return gzip.NewReader(r)
}

// unzipped names the trouble with a compressed body.
type unzipped struct {
	r    io.Reader
	what string
}

func (u *unzipped) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = unzipError(u.what, err)
	}
	return n, err
}

func unzipError(what string, err error) error {
	if _, ok := errors.AsType[*problem](err); ok {
		return err
	}
	return badRequest("%s not well-formed gzip: %s", what, err)
}

// incoming tells a body that was cut off, or comes too slowly, from one that ended.
type incoming struct {
	r    io.Reader
	what string
}

func (w *incoming) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	var timeout net.Error
	switch {
	case err == nil || errors.Is(err, io.EOF):
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = badRequest("%s cut off: the connection ended before the announced length", w.what)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		err = problemf(http.StatusRequestTimeout, runtimeError, "%s too slow in coming", w.what)
	}
	return n, err
}

// pieceBytes is how much of a body is read at once: two TLS records.
const pieceBytes = 32 << 10

var pieces = sync.Pool{New: func() any { return new([pieceBytes]byte) }}

// readDocument reads a body whole, as JSON.
func (c *call) readDocument(what string, limit int64, patience time.Duration) (string, error) {
	if err := c.sent(dataFormats); err != nil {
		return "", err
	}
	body, err := c.readAll(what, limit, patience)
	if err != nil || !isMessagePack(c.r.Header.Get("Content-Type")) {
		return body, err
	}
	return fromMessagePack(body)
}

func isMessagePack(header string) bool {
	mime, _, _ := strings.Cut(header, ";")
	return strings.EqualFold(strings.TrimSpace(mime), formatMessagePack.mime)
}

// readAll reads a body whole. It becomes a string because parsers cut their texts
// from it: a report of 85 KB is in memory once, not twice.
func (c *call) readAll(what string, limit int64, patience time.Duration) (string, error) {
	r, closing, err := c.body(what, limit, patience)
	if err != nil {
		return "", err
	}
	defer closing()
	var text strings.Builder
	if n := c.r.ContentLength; n > 0 {
		text.Grow(int(min(n, mebibyte))) // trust the header up to a point
	}
	piece, _ := pieces.Get().(*[pieceBytes]byte)
	defer pieces.Put(piece)
	for r := c.share(r); ; {
		n, err := r.Read(piece[:])
		text.Write(piece[:n])
		if errors.Is(err, io.EOF) {
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
	}
}
