package job_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
)

func linesOf(tb testing.TB, chunks []job.Chunk) []job.Line {
	tb.Helper()
	var lines []job.Line
	for _, c := range chunks {
		some, err := c.Lines(job.Run{ID: "r", Node: "n"})
		if err != nil {
			tb.Fatal(err)
		}
		if len(some) != c.Count || len(some) == 0 || some[0].Number != c.First {
			tb.Errorf("a chunk of %d lines from %d has %d", c.Count, c.First, len(some))
		}
		lines = append(lines, some...)
	}
	return lines
}

// text joins the lines of a stream as they were written.
func text(lines []job.Line, stream job.Stream) string {
	var b strings.Builder
	for _, l := range lines {
		if l.Stream != stream {
			continue
		}
		b.WriteString(l.Text)
		if !l.More {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func checkLines(tb testing.TB, stdout, stderr string) {
	tb.Helper()
	out, chunks := job.EncodeLines(stdout, stderr, time.Unix(1, 0))
	again, _ := job.EncodeLines(stdout, stderr, time.Unix(2, 0))
	lines := linesOf(tb, chunks)
	if out != again || out.Lines != len(lines) || out.Bytes != int64(len(stdout)+len(stderr)) || (out.Digest == "") != (len(lines) == 0) {
		tb.Errorf("%+v for %d lines and %d bytes; again %+v", out, len(lines), len(stdout)+len(stderr), again)
	}
	for i, l := range lines {
		if l.Number != i+1 || len(l.Text) > 3*job.MaxLineBytes || !utf8.ValidString(l.Text) || strings.Contains(l.Text, "\n") {
			tb.Errorf("line %d: %+v", i, l)
		}
	}
	for stream, want := range map[job.Stream]string{job.Stdout: stdout, job.Stderr: stderr} {
		if !utf8.ValidString(want) {
			continue
		}
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if got := text(lines, stream); got != want {
			tb.Errorf("%s is %.80q of %d bytes, want %.80q of %d", stream, got, len(got), want, len(want))
		}
	}
}

func TestLinesAreWhatWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		write := func(name string) string {
			piece := rapid.SampledFrom([]string{"", "aaaa", "\n", "ä\n", "\n\n", "a line\n", "\r\n", "\xff", "𝄞"}).Draw(rt, name)
			return strings.Repeat(piece, rapid.SampledFrom([]int{1, 2, 9_000}).Draw(rt, name+" times")) + rapid.StringN(0, 20, 80).Draw(rt, name+" end")
		}
		checkLines(t, write("stdout"), write("stderr"))
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}

func FuzzLines(f *testing.F) {
	f.Add("one\ntwo", "three\n")
	f.Add("", "\xff\x00")
	f.Fuzz(func(t *testing.T, stdout, stderr string) { checkLines(t, stdout, stderr) })
}

func TestTooMuchOutputIsCut(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 1023) + "\n"
	full := strings.Repeat(line, job.MaxOutputBytes/len(line))
	out, chunks := job.EncodeLines(full[:len(full)-1]+"ää", "gone\n", time.Unix(1, 0))
	lines := linesOf(t, chunks)
	if last := lines[len(lines)-1]; !out.Cut || out.Bytes != job.MaxOutputBytes || last.Stream != job.Stdout || !strings.HasSuffix(last.Text, "x\uFFFD") {
		t.Errorf("%+v, the last line %+v", out, last)
	}
	exact, _ := job.EncodeLines(full, "", time.Unix(1, 0))
	over, _ := job.EncodeLines(full, "x", time.Unix(1, 0))
	if exact.Cut || !over.Cut || exact.Lines != over.Lines {
		t.Errorf("just enough: %+v; a byte more: %+v", exact, over)
	}
}

func TestADamagedChunkIsAnError(t *testing.T) {
	t.Parallel()
	_, err := job.Chunk{First: 1, Count: 1, Text: []byte("xwhat\n")}.Lines(job.Run{})
	wantKind(t, err, fault.Internal)
}

func TestOutputInPages(t *testing.T) {
	t.Parallel()
	inWorld(t, 3, func(w *world) {
		long := strings.Repeat("a line that makes chunks full quickly enough\n", 4000)
		want := linesFrom(w, long)
		var got []string
		place, pages := job.Place{}, 0
		for {
			lines, next, err := w.Output(w.t.Context(), 1, job.OutputPage{After: place, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if len(lines) == 0 {
				break
			}
			for _, l := range lines {
				got = append(got, string(l.Node)+" "+l.Text)
			}
			place, pages = next, pages+1
		}
		if diff := cmp.Diff(want, got); diff != "" || pages < 4 {
			t.Errorf("%d pages (-want +got):\n%.2000s", pages, diff)
		}
		one, _, err := w.Output(w.t.Context(), 1, job.OutputPage{Node: "n003.example", Limit: 9})
		if err != nil || len(one) != 1 || one[0].Text != "last" {
			t.Errorf("of one node: %+v, %v", one, err)
		}
		_, _, err = w.Output(w.t.Context(), 9, job.OutputPage{Limit: 1})
		wantKind(t, err, fault.NotFound)
	})
}

// linesFrom runs a job whose first node writes a lot, the second nothing, and says what is to be read.
func linesFrom(w *world, long string) []string {
	w.fleet.Behave("n001.example", mannerOf(long))
	w.fleet.Behave("n003.example", mannerOf("last"))
	w.states(time.Second, w.order(command()).ID, job.Finished, job.Succeeded, job.Succeeded, job.Succeeded)
	var want []string
	for line := range strings.Lines(long) {
		want = append(want, "n001.example "+strings.TrimSuffix(line, "\n"))
	}
	return append(want, "n003.example last")
}

func mannerOf(stdout string) jobtest.Manner { return jobtest.Manner{Stdout: stdout} }
