package trace

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
)

// Source finds catalogs; *compile.Service is one.
type Source interface {
	Catalog(ctx context.Context, a compile.Ask) (compile.Answer, error)
}

// Catalogs is a Source that tells of each question.
type Catalogs struct {
	Source
	Recorder *Recorder
}

// Catalog implements Source.
func (c Catalogs) Catalog(ctx context.Context, a compile.Ask) (compile.Answer, error) {
	begin := time.Now()
	answer, err := c.Source.Catalog(ctx, a)
	c.Recorder.asked(a, answer, err, begin, time.Now())
	return answer, err
}

// asked tells of a question for a catalog. One of a run without a transaction_uuid is not followed: nothing ties it to anything.
func (r *Recorder) asked(a compile.Ask, answer compile.Answer, err error, begin, end time.Time) {
	of, ok := ofRun(a.Transaction)
	if r == nil || !ok {
		return
	}
	s := step{
		of: of, key: "asked " + strconv.FormatInt(begin.UnixNano(), 10), name: "catalog request", begin: begin, end: end,
		about: []attribute.KeyValue{
			attribute.String("tutti.node", string(a.Node)), attribute.String("tutti.environment", string(a.Environment)),
			attribute.String("tutti.result", resultOf(answer, err, begin)),
		},
	}
	if answer.Compilation.ID != 0 {
		s.about = append(s.about, attribute.Int64("tutti.compilation", answer.Compilation.ID))
	}
	if err != nil {
		s.failed = fault.Detail(err)
	}
	r.record(s)
}

// resultOf is what a question came to.
func resultOf(answer compile.Answer, err error, begin time.Time) string {
	_, code := errors.AsType[*compile.Error](err)
	switch {
	case code:
		return "does not compile"
	case fault.RetryAfter(err) > 0:
		return "told to come back"
	case err != nil:
		return "failed"
	case answer.Held:
		return "held"
	case answer.Compilation.FinishedAt.Before(begin):
		return "stored"
	default:
		return "compiled"
	}
}

// Compiled tells of a compilation that has ended: how long it waited, and how long it took.
func (r *Recorder) Compiled(c compile.Compilation) {
	if r == nil {
		return
	}
	of, ok := ofRun(c.Transaction)
	if !ok {
		of = r.of("compilation", c.ID)
	}
	key := "compilation " + strconv.FormatInt(c.ID, 10)
	s := step{
		of: of, key: key, name: "compilation", begin: c.WantedAt, end: c.FinishedAt,
		about: []attribute.KeyValue{
			attribute.Int64("tutti.compilation", c.ID), attribute.String("tutti.node", string(c.Node)), attribute.String("tutti.environment", string(c.Environment)),
			attribute.String("tutti.version", string(c.Version)), attribute.String("tutti.wanted", c.Priority.String()), attribute.Int("tutti.attempts", c.Attempts),
		},
	}
	if c.Err != nil {
		s.failed = c.Err.Message
	}
	r.record(s)
	if c.Cost.Wall > 0 { // else a stored catalog was used again
		r.record(step{
			of: of, key: key + " work", under: key, name: "compile", begin: c.FinishedAt.Add(-c.Cost.Wall), end: c.FinishedAt,
			about: []attribute.KeyValue{attribute.String("tutti.node", string(c.Node)), attribute.Int64("tutti.cpu_ms", c.Cost.CPU.Milliseconds())},
		})
	}
}
