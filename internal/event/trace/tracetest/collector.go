// Package tracetest is a collector of traces for tests: it reads what servers send with the protocol's own messages, and knows nothing of
// how they made it.
package tracetest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	traces "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Step is a step that came.
type Step struct {
	Trace, ID, Under string // hexadecimal; Under is empty for a step that is a part of no other one
	Name             string
	Server           string // who told of it
	Begin, End       time.Time
	Failed           string
	About            map[string]string // texts and numbers
	With             []string          // other traces
}

// Collector takes traces. It may be used concurrently.
type Collector struct {
	URL    string
	mu     sync.Mutex
	steps  []Step
	refuse bool
}

// Start starts one, which ends with the test.
func Start(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL + "/v1/traces"
	return c
}

// Refuse has it take nothing, or take all again.
func (c *Collector) Refuse(refuse bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = refuse
}

// Steps is what came so far, in that order.
func (c *Collector) Steps() []Step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Step(nil), c.steps...)
}

// Of is what came of one trace.
func (c *Collector) Of(trace string) []Step {
	var all []Step
	for _, s := range c.Steps() {
		if s.Trace == trace {
			all = append(all, s)
		}
	}
	return all
}

type refused string

func (r refused) Error() string { return string(r) }

func (c *Collector) take(r *http.Request) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		return refused(r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type"))
	}
	var data traces.TracesData
	if err := proto.Unmarshal(text, &data); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse {
		return refused("not now")
	}
	for _, from := range data.ResourceSpans {
		server := ""
		for _, a := range from.Resource.Attributes {
			if a.Key == "service.instance.id" {
				server = a.Value.GetStringValue()
			}
		}
		for _, scope := range from.ScopeSpans {
			for _, span := range scope.Spans {
				c.steps = append(c.steps, stepOf(span, server))
			}
		}
	}
	return nil
}

func stepOf(span *traces.Span, server string) Step {
	s := Step{
		Trace: hex.EncodeToString(span.TraceId), ID: hex.EncodeToString(span.SpanId), Under: hex.EncodeToString(span.ParentSpanId), Name: span.Name, Server: server,
		Begin: time.Unix(0, int64(span.StartTimeUnixNano)).UTC(), End: time.Unix(0, int64(span.EndTimeUnixNano)).UTC(), //nolint:gosec // times of this century
		About: map[string]string{},
	}
	if span.Status.GetCode() == traces.Status_STATUS_CODE_ERROR {
		s.Failed = span.Status.Message
	}
	for _, a := range span.Attributes {
		s.About[a.Key] = a.Value.GetStringValue()
		if number, ok := a.Value.Value.(*common.AnyValue_IntValue); ok {
			s.About[a.Key] = strconv.FormatInt(number.IntValue, 10)
		}
	}
	for _, l := range span.Links {
		s.With = append(s.With, hex.EncodeToString(l.TraceId))
	}
	return s
}
