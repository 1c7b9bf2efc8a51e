package api

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// The streams of job.events and preview.events are server-sent events: "id" is the number of the event,
// "data" a JobEvent or a PreviewEvent. A comment comes every StreamHeartbeat when there is nothing else,
// and StreamEnded is the type of the last event of a job, or a preview, that is over.
const (
	StreamHeartbeat = 15 * time.Second
	StreamEnded     = "end"
	StreamChanged   = "change"
)

// The patience of those who follow.
const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
	giveUp     = 10 * time.Minute // without one event or heartbeat
)

// FollowJob hands over the events of a job after the given number until the job is
// over or each returns an error. It connects again when the connection is lost, and goes on where it
// was: no event is left out, none comes twice. lost is told each time; back is called with the first
// thing heard after that.
func (c *Client) FollowJob(ctx context.Context, job string, after int64, each func(JobEvent) error, lost func(error), back func()) error {
	open := func(ctx context.Context, after int64) (*http.Response, error) {
		return JobEvents.open(ctx, c, JobEventsRequest{Job: job, After: strconv.FormatInt(after, 10)})
	}
	f := follower{after: after, back: back, open: open, take: untilEnd(func(e JobEvent) int64 { return e.Number }, each)}
	return f.follow(ctx, c.server.Host, lost)
}

// FollowPreview hands over how far a preview is until it has ended or each returns an error. It connects again as
// FollowJob does.
func (c *Client) FollowPreview(ctx context.Context, preview string, each func(PreviewEvent) error, lost func(error), back func()) error {
	open := func(ctx context.Context, after int64) (*http.Response, error) {
		request := PreviewEventsRequest{Preview: preview}
		if after >= 0 {
			request.After = strconv.FormatInt(after, 10)
		}
		return PreviewEvents.open(ctx, c, request)
	}
	f := follower{after: -1, back: back, open: open, take: untilEnd(func(e PreviewEvent) int64 { return e.Number }, each)}
	return f.follow(ctx, c.server.Host, lost)
}

// untilEnd takes the events of a stream that says when it ends, each with its number.
func untilEnd[E any](number func(E) int64, each func(E) error) func(kind, data string, f *follower) error {
	return func(kind, data string, f *follower) error {
		switch kind {
		case StreamEnded:
			f.ended = true
			return io.EOF
		case StreamChanged:
			var event E
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				return err
			}
			return f.pass(number(event), func() error { return each(event) })
		}
		return nil // a heartbeat, or something of a newer server
	}
}

// follow connects until the stream is over; host is the server's name, for errors.
func (f *follower) follow(ctx context.Context, host string, lost func(error)) error {
	f.heardAt = time.Now()
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := f.connect(ctx, host)
		switch {
		case f.ended, f.asked != nil:
			return f.asked
		case ctx.Err() != nil:
			return ctx.Err()
		case permanent(err) || time.Since(f.heardAt) > giveUp:
			return err
		}
		if f.heard {
			wait = firstRetry
		}
		if !f.away {
			lost(err)
		}
		f.away, f.heard = true, false
		pause := time.NewTimer(wait/2 + rand.N(wait)) //nolint:gosec // so that not all come back at once
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
	}
}

// permanent says whether asking again is of no use.
func permanent(err error) bool {
	switch fault.Of(err) {
	case fault.Invalid, fault.NotFound, fault.Denied, fault.Conflict:
		return true
	case fault.Internal, fault.Unavailable: // a server that is stopping, or a proxy before it
	}
	return false
}

// follower reads one stream after the other.
type follower struct {
	open    func(ctx context.Context, after int64) (*http.Response, error)
	take    func(kind, data string, f *follower) error // what came; io.EOF ends the stream
	after   int64                                      // the number of the last event that came
	back    func()
	asked   error // of who is handed the events
	ended   bool
	heard   bool // something, over this connection
	away    bool // the last connection was lost, and nothing was heard since
	heardAt time.Time
}

// pass hands over an event that did not come before.
func (f *follower) pass(number int64, each func() error) error {
	if number <= f.after {
		return nil
	}
	f.after = number
	f.asked = each()
	return f.asked
}

// connect reads a stream until it breaks off or ends.
func (f *follower) connect(ctx context.Context, host string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(3*StreamHeartbeat, cancel) // a dead connection says nothing, not even that
	defer silent.Stop()
	answer, err := f.open(ctx, f.after)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	err = readEvents(answer.Body, maxEvent, func(kind, data string) error {
		silent.Reset(3 * StreamHeartbeat)
		f.hear()
		return f.take(kind, data, f)
	})
	if f.ended || f.asked != nil {
		return f.asked
	}
	return fault.Wrap(fault.Unavailable, err, "the connection to %s was lost", host)
}

func (f *follower) hear() {
	f.heard, f.heardAt = true, time.Now()
	if f.away {
		f.away = false
		f.back()
	}
}

// maxEvent is the longest line of a stream, in bytes.
const maxEvent = 1 << 20

// readEvents hands over each event of a stream of server-sent events; a comment is
// an event without kind. It returns io.EOF at the end.
func readEvents(from io.Reader, longest int, each func(kind, data string) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 64<<10), longest)
	kind, data := "", []string(nil)
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		var err error
		switch {
		case line == "" && kind+strings.Join(data, "") != "":
			err = each(kind, strings.Join(data, "\n"))
			kind, data = "", nil
		case line != "" && field == "":
			err = each("", "")
		case field == "event":
			kind = value
		case field == "data":
			data = append(data, value)
		}
		if err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.EOF
}
