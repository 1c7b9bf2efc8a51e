package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Client calls the API of one server. Its methods may be called concurrently.
type Client struct {
	server *url.URL
	token  string
	http   *http.Client
}

// ClientConfig says how to reach a server and who asks. A Token or a
// Certificate is needed for everything but the status.
type ClientConfig struct {
	Server      string // https://HOST:PORT
	Token       string
	CAPEM       []byte           // the certificates that the server's is checked against; empty: the system's
	Certificate *tls.Certificate // a client certificate instead of a token
	// Through may put something between the client and its connections; nil: nothing.
	Through func(http.RoundTripper) http.RoundTripper
}

// NewClient checks c and returns a client; it does not connect yet.
func NewClient(c ClientConfig) (*Client, error) {
	server, err := url.Parse(c.Server)
	if err != nil || server.Scheme != "https" || server.Host == "" {
		return nil, fault.New(fault.Invalid, "the server's address must look like https://HOST:8140, not %.120q", c.Server)
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CAPEM) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(c.CAPEM) {
			return nil, fault.New(fault.Invalid, "the CA file holds no PEM certificate")
		}
	}
	if c.Certificate != nil {
		settings.Certificates = []tls.Certificate{*c.Certificate}
	}
	var transport http.RoundTripper = &http.Transport{
		TLSClientConfig: settings, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment,
		TLSHandshakeTimeout: 20 * time.Second, IdleConnTimeout: time.Minute,
	}
	if c.Through != nil {
		transport = c.Through(transport)
	}
	token := strings.TrimSpace(c.Token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &fault.Error{Kind: fault.Denied, Detail: "the token cannot be used: it holds a character that no token has", Hint: "get one with `tutti login`"}
	}
	return &Client{server: server, token: token, http: &http.Client{Transport: transport}}, nil
}

const jsonType = "application/json"

// maxAnswer is more than any answer has that is not a stream; one without an end would take all memory.
const maxAnswer = 1 << 29

// perform sends a request with its JSON body, if it has one, and returns an answer that is no error. The caller closes
// the answer's body.
func (c *Client) perform(ctx context.Context, op Operation, request any) (*http.Response, error) {
	if !hasBody(op.Request) {
		return c.open(ctx, op, request, nil, "")
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if replaced(text) {
		return nil, &fault.Error{
			Kind: fault.Invalid, Detail: "the request holds bytes that are no UTF-8 text, and would be sent as other ones",
			Hint: "type it in a terminal with UTF-8; bytes go to nodes in files: `tutti file send`",
		}
	}
	return c.open(ctx, op, request, bytes.NewReader(text), jsonType)
}

// replaced tells that JSON was made of bytes that are no UTF-8: the encoder puts an escape in their place, which it writes for nothing else.
func replaced(text []byte) bool {
	const mark = `\ufffd`
	for {
		i := bytes.Index(text, []byte(mark))
		if i < 0 {
			return false
		}
		before := len(text[:i]) - len(bytes.TrimRight(text[:i], `\`))
		if before%2 == 0 {
			return true
		}
		text = text[i+len(mark):]
	}
}

// decode reads the answer to an operation into response, if there is one.
func (c *Client) decode(name string, answer *http.Response, response any) error {
	must := named(reflect.TypeOf(response).Elem())
	if answer.StatusCode == http.StatusNoContent {
		if len(must) > 0 {
			return c.foreign(answer, name, errors.New("it is empty"))
		}
		return nil
	}
	body := &source{from: io.LimitReader(answer.Body, maxAnswer)}
	err := json.NewDecoder(body).Decode(response)
	switch {
	case err == nil && reflect.ValueOf(response).Elem().IsZero() && !body.names(must):
		return c.foreign(answer, name, errors.New("it has nothing of what was asked for"))
	case err == nil:
		return nil
	case body.broke():
		return fault.Wrap(fault.Unavailable, err, "the connection to %s broke within the answer to %s: %v; "+
			"it may have been done: look before you ask again", c.server.Host, name, err)
	default:
		return c.foreign(answer, name, err)
	}
}

// foreign is an answer that no server of ours gives: something else listens there, or stands before it, or is of another version. That
// nothing was done may not be said: what is before the server may have asked it.
func (c *Client) foreign(answer *http.Response, name string, err error) error {
	why := err.Error()
	if sent, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); sent != "" && sent != jsonType {
		why = "it is " + sent
	}
	return &fault.Error{
		Kind: fault.Unavailable, Detail: "the answer of " + c.server.Host + " to " + name + " is not understood: " + why,
		Hint: "is that a Tutti server, with nothing before it that answers in its place, and of this program's version? `tutti version` tells", Err: err,
	}
}

// named are the members that an answer of this type always has.
func named(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for field := range t.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" && !strings.Contains(options, "omit") {
			names = append(names, name)
		}
	}
	return names
}

// source remembers how reading ended: JSON that stops too early does not tell whether its sender or the connection did.
type source struct {
	from  io.Reader
	begin []byte // the first bytes
	err   error
}

const maxBegin = 4096

func (s *source) Read(p []byte) (n int, err error) {
	n, err = s.from.Read(p)
	s.err = err
	s.begin = append(s.begin, p[:min(n, maxBegin-len(s.begin))]...)
	return n, err
}

// names says whether one of these members, if there are any, was read.
func (s *source) names(members []string) bool {
	return len(members) == 0 || slices.ContainsFunc(members, func(name string) bool { return bytes.Contains(s.begin, []byte(strconv.Quote(name))) })
}

// broke says whether reading ended before the end.
func (s *source) broke() bool { return s.err != nil && s.err != io.EOF } //nolint:errorlint // readers give io.EOF as it is

// open performs op; the caller closes the answer's body.
func (c *Client) open(ctx context.Context, op Operation, request any, body io.Reader, contentType string) (*http.Response, error) {
	path, err := locate(op, request)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, op.Method, c.server.Scheme+"://"+c.server.Host+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", jsonType)
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(ctx, c.server.Host, err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		defer func() { _ = answer.Body.Close() }()
		return nil, problem(answer)
	}
	return answer, nil
}

// maxProblemBytes bounds an error answer; what was found in code may be much.
const maxProblemBytes = 4 << 20

// problem turns an error answer back into a fault.
func problem(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblemBytes))
	var p Problem
	if json.Unmarshal(text, &p) != nil || p.Message == "" {
		return fault.New(fault.Internal, "the server answered %s: %.200s", answer.Status, bytes.TrimSpace(text))
	}
	return p.fault()
}

// fault is the error that the problem tells of.
func (p Problem) fault() error {
	told := &fault.Error{Kind: fault.ParseKind(p.Kind), Detail: p.Message, Hint: p.Hint, RetryAfter: time.Duration(p.RetryAfter) * time.Second}
	if p.Check != nil {
		told.Err = &CheckFailed{*p.Check}
	}
	if p.RequestID != "" {
		told.Err = &answered{p.RequestID, told.Err}
	}
	return told
}

// answered is the cause of an error that a server answered with.
type answered struct {
	requestID string
	err       error // nil: nothing more is known
}

func (a *answered) Error() string { return "request " + a.requestID }

func (a *answered) Unwrap() error { return a.err }

// RequestID is by what the server's log knows the request that ended in err; empty: no server answered.
func RequestID(err error) string {
	if a, ok := errors.AsType[*answered](err); ok {
		return a.requestID
	}
	return ""
}
