package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint/bulk"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/hint/bus/bustest"
)

// shared is servers in one process, over one store of content.
type shared struct {
	hub     bus.Local
	members []*bus.Member
	content *watched
}

func newShared() *shared { return &shared{content: &watched{Store: castest.New()}} }

func (s *shared) Join(*testing.T) bus.Bus {
	m := s.hub.Join()
	s.members = append(s.members, m)
	return bulk.New(m, s.content)
}

func (s *shared) Cut(_ *testing.T, cut bool) {
	for _, m := range s.members {
		m.Cut(cut)
	}
}

// watched is a store that shows what it is given, and may fail.
type watched struct {
	*castest.Store
	put  [][]byte
	fail error
	next []error // of the next calls
}

// Open implements bulk.Content.
func (w *watched) Open(ctx context.Context, d fleet.Digest) (cas.Blob, error) {
	if err := w.failed(); err != nil {
		return nil, err
	}
	blob, err := w.Store.Open(ctx, d)
	return broken{blob, w.failed()}, err
}

func (w *watched) failed() error {
	if len(w.next) == 0 {
		return w.fail
	}
	err := w.next[0]
	w.next = w.next[1:]
	return err
}

// broken is a blob that cannot be read, if there is an error.
type broken struct {
	cas.Blob
	err error
}

func (b broken) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return b.Blob.Read(p)
}

func (w *watched) Put(ctx context.Context, r io.Reader) (fleet.Digest, int64, error) {
	if err := w.failed(); err != nil {
		return "", 0, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return "", 0, err
	}
	w.put = append(w.put, data)
	return w.Store.Put(ctx, bytes.NewReader(data))
}

func TestConformance(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(*testing.T) bustest.World { return newShared() }, "what is too large goes nowhere")
}

// echo answers with what was asked, and something in front of it.
func echo(t *testing.T, b bus.Bus, front string) {
	t.Helper()
	if _, err := b.Subscribe(bus.Subscriber{Subject: "t", Take: func(_ context.Context, _ string, data []byte) ([]byte, error) {
		return append([]byte(front), data...), nil
	}}); err != nil {
		t.Fatal(err)
	}
}

func TestLargeRequestsAndAnswersAreSealedContent(t *testing.T) {
	t.Parallel()
	s := newShared()
	asks, answers := s.Join(t), s.Join(t)
	echo(t, answers, "back: ")
	for name, c := range map[string]struct {
		text string
		puts int
	}{
		"small":                          {"hello", 0},
		"an answer that just grows":      {strings.Repeat("x", bus.MaxBytes-5), 1},
		"a large one with a secret":      {strings.Repeat("the password is hunter2. ", 100_000), 2},
		"small, and looks like a place":  {"content\x00{}", 1},
		"nothing":                        {"", 0},
		"as large as it may be, for one": {strings.Repeat("y", bus.MaxBytes), 1},
	} {
		s.content.put = nil
		got, err := asks.Request(t.Context(), "t", []byte(c.text))
		if want := "back: " + c.text; err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
		if len(s.content.put) != c.puts {
			t.Errorf("%s: %d messages were stored, want %d", name, len(s.content.put), c.puts)
		}
		for _, sealed := range s.content.put {
			if bytes.Contains(sealed, []byte("hunter2")) {
				t.Errorf("%s: content has what the message says", name)
			}
		}
	}
}

func TestLargeMessagesThatCannotTravel(t *testing.T) {
	t.Parallel()
	s := newShared()
	asks, answers := s.Join(t), s.Join(t)
	echo(t, answers, "")
	plain := s.hub.Join() // it writes what it likes
	large := bytes.Repeat([]byte("x"), bus.MaxBytes+1)
	request := func(b bus.Bus, data []byte) error {
		_, err := b.Request(t.Context(), "t", data)
		return err
	}
	if err := request(asks, make([]byte, bulk.MaxBytes+1)); !fault.Is(err, fault.Invalid) {
		t.Errorf("larger than anything may be: %v", err)
	}
	var kept []byte
	watch := s.hub.Join()
	if _, err := watch.Subscribe(bus.Subscriber{Subject: "watched", Take: func(_ context.Context, _ string, data []byte) ([]byte, error) {
		kept = data
		return nil, nil
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := asks.Request(t.Context(), "watched", large); err != nil {
		t.Fatal(err)
	}
	other, _, err := s.content.Put(t.Context(), strings.NewReader("something else, and long enough to be sealed"))
	if err != nil {
		t.Fatal(err)
	}
	digest := string(kept[bytes.Index(kept, []byte(`digest":"`))+len(`digest":"`):])
	digest, _, _ = strings.Cut(digest, `"`)
	for name, c := range map[string]struct {
		data string
		kind fault.Kind
	}{
		"as it was":          {string(kept), fault.Kind(0)},
		"another content":    {strings.ReplaceAll(string(kept), digest, string(other)), fault.Internal},
		"content that isn't": {strings.ReplaceAll(string(kept), digest, string(fleet.DigestOf([]byte("nowhere")))), fault.Internal},
		"no JSON":            {"content\x00{", fault.Invalid},
		"a short key":        {`content` + "\x00" + `{"digest":"` + digest + `","key":"AAAA"}`, fault.Invalid},
	} {
		err := request(plain, []byte(c.data))
		if name == "as it was" && err != nil || name != "as it was" && !fault.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the store cannot keep or give for a moment is tried again; after that, whoever asks is told.
func TestAStoreThatIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	away := errors.New("the store is away")
	large := bytes.Repeat([]byte("x"), bus.MaxBytes+1)
	for name, c := range map[string]struct {
		next []error // one for each Put; one for each Open, and one for the content that it gave
		fail error   // from then on
		want bool
	}{
		"when it is to keep a request":         {next: []error{away, away}, want: true},
		"when it is to give a request":         {next: []error{nil, away, fault.New(fault.Unavailable, "away")}, want: true},
		"in the middle of a request":           {next: []error{nil, nil, away}, want: true},
		"when it is to keep an answer":         {next: []error{nil, nil, nil, away}, want: true},
		"when it is to give an answer":         {next: []error{nil, nil, nil, nil, away}, want: true},
		"for long, when it is to keep":         {fail: away},
		"for long, when it is to give":         {next: []error{nil}, fail: away},
		"for long, in the middle of a request": {next: []error{nil, nil}, fail: io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newShared()
				asks, answers := s.Join(t), s.Join(t)
				defer func() {
					if err := errors.Join(asks.Close(), answers.Close()); err != nil {
						t.Error(err)
					}
				}()
				taken := 0
				if _, err := answers.Subscribe(bus.Subscriber{Subject: "t", Take: func(_ context.Context, _ string, data []byte) ([]byte, error) {
					taken++
					return data, nil
				}}); err != nil {
					t.Fatal(err)
				}
				s.content.next, s.content.fail = c.next, c.fail
				begin := time.Now()
				got, err := asks.Request(t.Context(), "t", large)
				if took := time.Since(begin); took > 2*time.Second {
					t.Errorf("it took %v", took)
				}
				if c.want && (err != nil || !bytes.Equal(got, large) || taken != 1) {
					t.Errorf("%d bytes, %v; it was taken %d times", len(got), err, taken)
				}
				if !c.want && (!fault.Is(err, fault.Unavailable) || taken != 0) {
					t.Errorf("%v; it was taken %d times", err, taken)
				}
			})
		})
	}
}

// What lasts is said at once.
func TestContentThatIsNotThereIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShared()
		asks, answers := s.Join(t), s.Join(t)
		echo(t, answers, "")
		begin := time.Now()
		s.content.next = []error{nil, fault.New(fault.NotFound, "it was swept")}
		_, err := asks.Request(t.Context(), "t", bytes.Repeat([]byte("x"), bus.MaxBytes+1))
		if !fault.Is(err, fault.Internal) || time.Since(begin) > 0 {
			t.Errorf("%v, after %v", err, time.Since(begin))
		}
		if err := errors.Join(asks.Close(), answers.Close()); err != nil {
			t.Error(err)
		}
	})
}
