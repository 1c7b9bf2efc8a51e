package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/tutti-project/tutti/internal/fault"
)

// Config says where traces go.
type Config struct {
	URL          string  // of the collector: http(s)://HOST:PORT/v1/traces
	Share        float64 // of the traces that are kept, above 0 and up to 1
	Server       string  // this one's name among the servers
	Version      string  // of this program
	Installation string  // the same on all servers, and on no others: numbers of jobs are the same everywhere
}

// Check refuses what cannot be, without asking the collector.
func (c Config) Check() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fault.New(fault.Invalid, "it is not http://HOST:PORT/v1/traces or https://HOST:PORT/v1/traces")
	case u.User != nil:
		return fault.New(fault.Invalid,
			"it has a user or a password, which would be seen in the settings: let a collector of your own add what the next one asks for")
	}
	return nil
}

// The bounds of what waits for the collector.
const (
	queued    = 16_384
	inBatch   = 512
	every     = 2 * time.Second
	sendMay   = 5 * time.Second
	closeMay  = 3 * time.Second
	maxOfText = 1024 // bytes of an attribute, or of an error
)

// Recorder records steps.
type Recorder struct {
	installation string
	provider     *sdk.TracerProvider
	tracer       oteltrace.Tracer
	log          *slog.Logger
}

// Open makes a Recorder; nil if no URL is given.
func Open(c Config, log *slog.Logger) (*Recorder, error) {
	if c.URL == "" {
		return nil, nil //nolint:nilnil // a nil Recorder records nothing
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxOfText
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.TraceIDRatioBased(c.Share)),
		sdk.WithIDGenerator(given{}),
		sdk.WithRawSpanLimits(limits),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "tutti"), attribute.String("service.instance.id", c.Server), attribute.String("service.version", c.Version),
		)),
		sdk.WithBatcher(newCollector(c.URL, log), sdk.WithMaxQueueSize(queued), sdk.WithMaxExportBatchSize(inBatch), sdk.WithBatchTimeout(every),
			sdk.WithExportTimeout(sendMay)),
	)
	return &Recorder{installation: c.Installation, provider: provider, tracer: provider.Tracer("tutti"), log: log}, nil
}

// Close sends what waits, for a moment. What the collector has not taken by then is lost, which is no failure of who closes.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeMay)
	defer cancel()
	if err := r.provider.Shutdown(ctx); err != nil {
		r.log.WarnContext(ctx, "the collector did not take the last traces in time, they are lost", "err", err)
	}
}

// subject is what a trace is of.
type subject struct{ trace oteltrace.TraceID }

// of is a trace of what has a number in this installation.
func (r *Recorder) of(kind string, number int64) subject {
	sum := sha256.Sum256([]byte(strings.Join([]string{"tutti trace", r.installation, kind, strconv.FormatInt(number, 10)}, "\x00")))
	return subject{oteltrace.TraceID(sum[:16])}
}

// ofRun is the trace of what a Puppet run asked for; false if the run has no transaction_uuid.
func ofRun(transaction string) (s subject, ok bool) {
	id, err := hex.DecodeString(strings.ReplaceAll(transaction, "-", ""))
	if err != nil || len(id) != len(s.trace) || !oteltrace.TraceID(id).IsValid() {
		return s, false
	}
	return subject{oteltrace.TraceID(id)}, true
}

// id is the identity of a step in a trace.
func (s subject) id(key string) oteltrace.SpanID {
	sum := sha256.Sum256(slices.Concat(s.trace[:], []byte(key)))
	return oteltrace.SpanID(sum[:8])
}

// step is a part of a trace that is over.
type step struct {
	of         subject
	key        string // names it in its trace
	under      string // the key of the step that it is a part of; empty: of none
	name       string // what is done, the same for all of its kind
	begin, end time.Time
	failed     string // why it failed; empty: it did not
	about      []attribute.KeyValue
	with       []subject // traces that have more of it
}

// record tells of a step.
func (r *Recorder) record(s step) {
	if r == nil || s.begin.IsZero() || s.end.IsZero() {
		return
	}
	ctx := context.WithValue(context.Background(), identity{}, identity{s.of.trace, s.of.id(s.key)})
	options := []oteltrace.SpanStartOption{oteltrace.WithTimestamp(s.begin), oteltrace.WithAttributes(s.about...)}
	if s.under != "" {
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: s.of.trace, SpanID: s.of.id(s.under)}))
	}
	for _, other := range s.with {
		options = append(options, oteltrace.WithLinks(oteltrace.Link{SpanContext: oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
			TraceID: other.trace, SpanID: other.id(whole),
		})}))
	}
	_, span := r.tracer.Start(ctx, s.name, options...)
	if s.failed != "" {
		span.SetStatus(codes.Error, strings.ToValidUTF8(s.failed[:min(len(s.failed), maxOfText)], ""))
	}
	if s.end.Before(s.begin) { // clocks of two servers
		s.end = s.begin
	}
	span.End(oteltrace.WithTimestamp(s.end))
}

// whole is the key of the step that all others of a trace are parts of.
const whole = "whole"

// identity is who a step is; in a context also the key for it.
type identity struct {
	trace oteltrace.TraceID
	step  oteltrace.SpanID
}

// given gives steps the identities that are in their contexts.
type given struct{}

// NewIDs implements sdk.IDGenerator.
func (given) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	id, _ := ctx.Value(identity{}).(identity)
	return id.trace, id.step
}

// NewSpanID implements sdk.IDGenerator.
func (given) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	id, _ := ctx.Value(identity{}).(identity)
	return id.step
}
