package trace

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resources "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tutti-project/tutti/internal/fault"
)

// collector sends steps to a collector. It is an sdk.SpanExporter, whose methods are called one at a time.
type collector struct {
	url    string
	client *http.Client
	log    *slog.Logger
	away   bool // that it takes nothing was said
}

func newCollector(url string, log *slog.Logger) *collector {
	return &collector{url: url, log: log, client: &http.Client{
		Timeout:       sendMay,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ExportSpans implements sdk.SpanExporter. What is not taken is lost: it is said here, once.
func (c *collector) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.send(ctx, spans)
	switch {
	case err != nil && !c.away:
		c.log.WarnContext(ctx, "the collector takes no traces, those of now are lost; will go on trying", "url", c.url, "err", err)
	case err == nil && c.away:
		c.log.InfoContext(ctx, "the collector takes traces again", "url", c.url)
	}
	c.away = err != nil
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (c *collector) Shutdown(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

func (c *collector) send(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	text, err := proto.Marshal(message(spans))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	answer, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
	if answer.StatusCode/100 != 2 {
		return fault.New(fault.Unavailable, "it answers %s: %.200s", answer.Status, strings.Join(strings.Fields(string(said)), " "))
	}
	return nil
}

// message is spans as the collector reads them. All are of one server.
func message(spans []sdk.ReadOnlySpan) *traces.TracesData {
	scope := &traces.ScopeSpans{Scope: &common.InstrumentationScope{Name: "tutti"}}
	var from *resources.Resource
	for _, s := range spans {
		from = &resources.Resource{Attributes: pairs(s.Resource().Attributes())}
		scope.Spans = append(scope.Spans, spanOf(s))
	}
	return &traces.TracesData{ResourceSpans: []*traces.ResourceSpans{{Resource: from, ScopeSpans: []*traces.ScopeSpans{scope}}}}
}

func spanOf(s sdk.ReadOnlySpan) *traces.Span {
	who := s.SpanContext()
	trace, id := who.TraceID(), who.SpanID()
	span := &traces.Span{
		TraceId: trace[:], SpanId: id[:], Name: s.Name(), Kind: traces.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: nanoseconds(s.StartTime()), EndTimeUnixNano: nanoseconds(s.EndTime()), Attributes: pairs(s.Attributes()),
		DroppedAttributesCount: uint32(max(0, s.DroppedAttributes())), //nolint:gosec // a few
	}
	if parent := s.Parent(); parent.SpanID().IsValid() {
		id := parent.SpanID()
		span.ParentSpanId = id[:]
	}
	for _, l := range s.Links() {
		trace, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		span.Links = append(span.Links, &traces.Span_Link{TraceId: trace[:], SpanId: id[:]})
	}
	if status := s.Status(); status.Code == codes.Error {
		span.Status = &traces.Status{Code: traces.Status_STATUS_CODE_ERROR, Message: status.Description}
	}
	return span
}

func nanoseconds(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) }

func pairs(all []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, len(all))
	for i, a := range all {
		value := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: a.Value.String()}}
		if a.Value.Type() == attribute.INT64 {
			value.Value = &common.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		}
		out[i] = &common.KeyValue{Key: string(a.Key), Value: value}
	}
	return out
}
