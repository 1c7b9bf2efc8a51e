package puppet

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	smallBlob  = 64 << 10
	largeChunk = 256 << 10
)

// Two sizes of buffers: most files are small, and must not take a large one.
var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBlob]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeChunk]byte) }}
)

// blobs sends content to agents.
type blobs struct {
	store    cas.Store
	patience time.Duration // how long one piece of a large one may take
}

// send sends a blob, or the range of it that was asked for. Content under a
// digest never changes, so the digest is its entity tag.
func (b blobs) send(c *call, digest fleet.Digest) error {
	tag := tagOf(digest)
	if match := c.r.Header.Get("If-None-Match"); match != "" && matches(match, tag) {
		c.w.Header()["Etag"] = []string{tag}
		c.started = true
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	blob, err := b.store.Open(c.ctx(), digest)
	if err != nil {
		return notStored(digest, err)
	}
	defer func() { _ = blob.Close() }()
	size := blob.Size()
	part, err := c.wantedRange(tag, size)
	if err != nil {
		return err
	}
	c.describe(digest)
	switch {
	case c.r.Method == http.MethodHead:
		c.head(http.StatusOK, size)
		return nil
	case part != nil:
		return b.part(c, blob, *part, size)
	case size <= smallBlob:
		return b.small(c, digest)
	default:
		return b.large(c, blob, size)
	}
}

var (
	octets       = []string{formatBinary.contentType}
	acceptRanges = []string{"bytes"}
)

// head sends an answer's head; from here on errors can only break it off.
func (c *call) head(status int, length int64) {
	c.w.Header()["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	c.started = true
	c.w.WriteHeader(status)
}

// wantsWhole tells that an answer to c can only be the whole content.
func (c *call) wantsWhole() bool {
	header := c.r.Header
	return c.r.Method == http.MethodGet && len(header["Range"]) == 0 && len(header["If-None-Match"]) == 0
}

// small sends a whole blob in one piece. It is read to its end first, so
// that corrupt content becomes an error and not half an answer. A blob that is
// larger than announced is sent as any other.
func (b blobs) small(c *call, digest fleet.Digest) error {
	buf := smallBuffers.Get().(*[smallBlob]byte)
	defer smallBuffers.Put(buf)
	size, err := cas.Fill(c.ctx(), b.store, digest, buf[:])
	switch {
	case err != nil:
		return notStored(digest, err)
	case size > smallBlob:
		return b.send(c, digest)
	}
	c.describe(digest)
	c.head(http.StatusOK, size)
	_, _ = c.w.Write(buf[:size]) // the connection's end is the agent's to notice
	return nil
}

// describe sets the headers of a blob's content.
func (c *call) describe(digest fleet.Digest) {
	header := c.w.Header()
	header["Etag"] = []string{tagOf(digest)}
	header["Accept-Ranges"] = acceptRanges
	header["Content-Type"] = octets
}

func tagOf(digest fleet.Digest) string { return `"` + string(digest) + `"` }

// notStored makes a blob that is missing our mistake: a version names it, so
// somebody removed it.
func notStored(digest fleet.Digest, err error) error {
	if isNotFound(err) {
		return fmt.Errorf("blob %s of a known file is not stored", digest)
	}
	return err
}

// large streams a blob. The last piece goes out only when the whole was
// found to be what it should be: corrupt content ends in a broken connection.
func (b blobs) large(c *call, blob cas.Blob, size int64) error {
	buf := largeBuffers.Get().(*[largeChunk]byte)
	defer largeBuffers.Put(buf)
	deadlines := http.NewResponseController(c.w)
	defer func() { _ = deadlines.SetWriteDeadline(time.Time{}) }()
	for sent := int64(0); sent < size; {
		want := min(size-sent, largeChunk)
		if _, err := io.ReadFull(blob, buf[:want]); err != nil {
			return err
		}
		if sent += want; sent == size {
			if err := atEnd(blob); err != nil {
				return err
			}
		}
		if !c.started {
			c.head(http.StatusOK, size)
		}
		_ = deadlines.SetWriteDeadline(time.Now().Add(b.patience))
		if _, err := c.w.Write(buf[:want]); err != nil {
			return nil // the client went away; nobody is left to tell
		}
	}
	return nil
}

// atEnd asks for the verdict on what was read.
func atEnd(blob cas.Blob) error {
	var extra [1]byte
	n, err := io.ReadFull(blob, extra[:])
	if err == io.EOF {
		return nil
	}
	if n > 0 {
		return fmt.Errorf("a blob is larger than its size of %d bytes", blob.Size())
	}
	return err
}

// byteRange is the part of a blob that was asked for.
type byteRange struct{ start, length int64 }

func (b blobs) part(c *call, blob cas.Blob, part byteRange, size int64) error {
	if _, err := blob.Seek(part.start, io.SeekStart); err != nil {
		return err
	}
	buf := largeBuffers.Get().(*[largeChunk]byte)
	defer largeBuffers.Put(buf)
	deadlines := http.NewResponseController(c.w)
	defer func() { _ = deadlines.SetWriteDeadline(time.Time{}) }()
	c.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.start, part.start+part.length-1, size))
	c.head(http.StatusPartialContent, part.length)
	for left := part.length; left > 0; {
		want := min(left, largeChunk)
		if _, err := io.ReadFull(blob, buf[:want]); err != nil {
			return err
		}
		_ = deadlines.SetWriteDeadline(time.Now().Add(b.patience))
		if _, err := c.w.Write(buf[:want]); err != nil {
			return nil // the client went away; nobody is left to tell
		}
		left -= want
	}
	return nil
}

// wantedRange reads the Range header. Several ranges at once, other units, and a
// range of another version are answered with the whole, as HTTP allows.
func (c *call) wantedRange(tag string, size int64) (*byteRange, error) {
	spec, ok := strings.CutPrefix(c.r.Header.Get("Range"), "bytes=")
	if !ok || c.r.Method != http.MethodGet || strings.Contains(spec, ",") {
		return nil, nil //nolint:nilnil // nil is the whole
	}
	if condition := c.r.Header.Get("If-Range"); condition != "" && condition != tag {
		return nil, nil //nolint:nilnil // nil is the whole
	}
	part, valid := parseRange(strings.TrimSpace(spec), size)
	if !valid {
		return nil, nil //nolint:nilnil // nil is the whole
	}
	if part.length <= 0 {
		c.w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return nil, problemf(http.StatusRequestedRangeNotSatisfiable, runtimeError, "the file has %d bytes, the range '%.40s' is not in it", size, spec)
	}
	return &part, nil
}

// parseRange understands "5-9", "5-" and "-5". A range outside of the content
// has no length.
func parseRange(spec string, size int64) (byteRange, bool) {
	first, last, ok := strings.Cut(spec, "-")
	if !ok {
		return byteRange{}, false
	}
	if first == "" { // the last so many bytes
		n, ok := digits(last)
		n = min(n, size)
		return byteRange{size - n, n}, ok
	}
	start, ok := digits(first)
	if !ok {
		return byteRange{}, false
	}
	end := size - 1
	if last != "" {
		n, ok := digits(last)
		if !ok || n < start {
			return byteRange{}, false
		}
		end = min(end, n)
	}
	return byteRange{start, end - start + 1}, true
}

func digits(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n), err == nil
}

// matches looks for tag in an If-None-Match list.
func matches(list, tag string) bool {
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimPrefix(strings.TrimSpace(word), "W/")
		if word == tag || word == "*" {
			return true
		}
	}
	return false
}
