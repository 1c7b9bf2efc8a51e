package load

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"
)

const (
	bufferBytes    = 64 << 10 // what a connection reads and writes at a time
	drainBytes     = 64 << 10
	maxBodyBytes   = 256 << 20
	requestTimeout = 5 * time.Minute
)

// Request is one HTTP request.
type Request struct {
	Method string // empty: GET
	Path   string // with query, escaped
	Header http.Header
	Body   []byte
}

// Response is what came back. Body is nil if it was not asked for.
type Response struct {
	Status     int
	Header     http.Header
	Body       []byte // unpacked
	BodyBytes  int64  // as they came over the wire
	RetryAfter time.Duration
}

// StatusError is an answer that was not asked for.
type StatusError struct {
	Request string
	Status  int
	Body    string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.Request, e.Status, e.Body)
}

// Conn is one connection that is opened when needed and kept.
type Conn struct {
	host   string
	config *tls.Config // nil: clear text
	conn   net.Conn
	reader *bufio.Reader
	writer *bufio.Writer
	drain  []byte

	BufferBytes int // of reader and writer; set it before the first request, when there are thousands

	Dials  int    // how often it connected
	Cipher uint16 // negotiated last
}

// NewConn prepares a connection to a base URL such as https://127.0.0.1:8140.
func NewConn(base string, config *tls.Config) (*Conn, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("parse server URL: %w", err)
	}
	if u.Scheme == "http" {
		config = nil
	} else if config != nil {
		config = config.Clone()
		config.NextProtos = []string{"http/1.1"}
		if config.ServerName == "" {
			config.ServerName = u.Hostname()
		}
	}
	return &Conn{host: u.Host, config: config, BufferBytes: bufferBytes}, nil
}

// Close ends the connection; the next request opens a new one.
func (c *Conn) Close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// Discard sends r and throws the body away, counting it. A connection that the
// server closed between two requests is opened again, once.
func (c *Conn) Discard(ctx context.Context, r Request) (Response, error) {
	return c.do(ctx, r, false)
}

// Fetch sends r and returns the body, unpacked if it came packed.
func (c *Conn) Fetch(ctx context.Context, r Request) (Response, error) {
	return c.do(ctx, r, true)
}

// Patient is Fetch as a stock agent does it: told to come back later, it waits
// and asks again.
func (c *Conn) Patient(ctx context.Context, r Request) (Response, error) {
	for {
		response, err := c.Fetch(ctx, r)
		if err != nil || response.Status != http.StatusServiceUnavailable || response.RetryAfter <= 0 {
			return response, err
		}
		select {
		case <-ctx.Done():
			return response, ctx.Err()
		case <-time.After(response.RetryAfter):
		}
	}
}

func (c *Conn) do(ctx context.Context, r Request, keep bool) (Response, error) {
	fresh := c.conn == nil
	response, err := c.once(ctx, r, keep)
	if err != nil && !fresh && stale(err) {
		response, err = c.once(ctx, r, keep)
	}
	if err != nil {
		return response, fmt.Errorf("%s %s: %w", r.method(), r.Path, err)
	}
	return response, nil
}

// stale says that an idle connection was closed under us before it answered. A connection
// whose time was up was not.
func stale(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	var op *net.OpError
	return errors.Is(err, errNoAnswer) || errors.Is(err, net.ErrClosed) || errors.As(err, &op) && op.Op == "write"
}

var errNoAnswer = errors.New("connection closed before the answer")

func (c *Conn) once(ctx context.Context, r Request, keep bool) (_ Response, err error) {
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err := c.open(ctx); err != nil {
		return Response{}, err
	}
	deadline := time.Now().Add(requestTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return Response{}, err
	}
	if err := c.send(r); err != nil {
		return Response{}, err
	}
	if _, err := c.reader.Peek(1); err != nil {
		return Response{}, errors.Join(errNoAnswer, err)
	}
	return c.receive(r, keep)
}

func (c *Conn) open(ctx context.Context) error {
	if c.conn != nil {
		return nil
	}
	var dialer net.Dialer
	raw, err := dialer.DialContext(ctx, "tcp", c.host)
	if err != nil {
		return err
	}
	c.Dials++
	c.conn = raw
	if c.config != nil {
		secure := tls.Client(raw, c.config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			c.conn = nil
			return err
		}
		c.Cipher = secure.ConnectionState().CipherSuite
		c.conn = secure
	}
	c.reader = bufio.NewReaderSize(c.conn, c.BufferBytes)
	c.writer = bufio.NewWriterSize(c.conn, c.BufferBytes)
	return nil
}

func (r Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

func (c *Conn) send(r Request) error {
	_, _ = fmt.Fprintf(c.writer, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.method(), r.Path, c.host)
	if r.Body != nil {
		_, _ = fmt.Fprintf(c.writer, "Content-Length: %d\r\n", len(r.Body))
	}
	if err := r.Header.Write(c.writer); err != nil {
		return err
	}
	_, _ = c.writer.WriteString("\r\n")
	_, _ = c.writer.Write(r.Body)
	return c.writer.Flush() // also gives the errors of the lines above
}

func (c *Conn) receive(r Request, keep bool) (Response, error) {
	answer, err := http.ReadResponse(c.reader, &http.Request{Method: r.method()})
	if err != nil {
		return Response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	response := Response{Status: answer.StatusCode, Header: answer.Header}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		response.RetryAfter = time.Duration(seconds) * time.Second
	}
	if keep || answer.StatusCode >= http.StatusBadRequest {
		packed, err := io.ReadAll(io.LimitReader(answer.Body, maxBodyBytes))
		if err != nil {
			return response, err
		}
		response.BodyBytes = int64(len(packed))
		if response.Body, err = unpack(packed, answer.Header.Get("Content-Encoding")); err != nil {
			return response, err
		}
	} else if response.BodyBytes, err = c.discard(answer.Body); err != nil {
		return response, err
	}
	if answer.Close {
		c.Close()
	}
	return response, nil
}

// discard reads with our own large buffer; io.Discard would read 8 KB at a time.
func (c *Conn) discard(body io.Reader) (int64, error) {
	if c.drain == nil {
		c.drain = make([]byte, drainBytes)
	}
	var n int64
	for {
		got, err := body.Read(c.drain)
		n += int64(got)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func unpack(packed []byte, encoding string) ([]byte, error) {
	if encoding != "gzip" {
		return packed, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack response: %w", err)
	}
	return io.ReadAll(io.LimitReader(reader, maxBodyBytes))
}

// Expect turns any status but the wanted ones into a [StatusError].
func Expect(r Request, response Response, err error, want ...int) error {
	if err != nil {
		return err
	}
	if slices.Contains(want, response.Status) {
		return nil
	}
	body := response.Body
	if len(body) > 400 {
		body = body[:400]
	}
	return &StatusError{Request: r.method() + " " + r.Path, Status: response.Status, Body: string(body)}
}
