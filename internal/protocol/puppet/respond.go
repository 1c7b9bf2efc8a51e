package puppet

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

const (
	// gzipFrom is the size from which compressing is worth it: below, the answer
	// fits one packet anyway.
	gzipFrom = 1400
	// keepBuffer is the largest buffer that goes back to its pool.
	keepBuffer = 4 * mebibyte
)

// document writes a JSON document that is already encoded.
func (c *call) document(f format, body []byte) error {
	if f.messagePack {
		return c.packed(f, body, false)
	}
	c.w.Header().Set("Content-Type", f.contentType)
	if len(body) < gzipFrom {
		return c.whole(body)
	}
	c.w.Header().Set("Vary", "Accept-Encoding")
	if !c.takesGzip() {
		return c.whole(body)
	}
	buf := compressed(body)
	defer recycle(buf)
	c.w.Header().Set("Content-Encoding", "gzip")
	return c.whole(buf.Bytes())
}

// value encodes v and writes it.
func (c *call) value(f format, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.document(f, body)
}

// whole writes a body of known length. What goes wrong from here on is the
// connection's end, which the agent notices by itself.
func (c *call) whole(body []byte) error {
	c.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.started = true
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(body)
	}
	return nil
}

var (
	gzipWriters = sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
		return w
	}}
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// compressed returns a pooled buffer; recycle gives it back.
func compressed(body []byte) *bytes.Buffer {
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	w.Reset(buf)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return buf
}

func recycle(buf *bytes.Buffer) {
	if buf.Cap() <= keepBuffer {
		buffers.Put(buf)
	}
}
