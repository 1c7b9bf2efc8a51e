package job

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// The bounds of output.
const (
	MaxOutputBytes = 16 << 20 // of a run; what comes after is dropped, and the run says so
	MaxLineBytes   = 32 << 10 // of a line; a longer one is stored as several
	chunkBytes     = 64 << 10 // of a chunk's text, about
)

// A line in a chunk is a mark, its text and the end of line. The mark tells the stream,
// a capital one that the line goes on.
const (
	markStdout     = 'o'
	markStderr     = 'e'
	markStdoutMore = 'O'
	markStderrMore = 'E'
)

// EncodeLines makes chunks of what a run wrote. What is not UTF-8, which JSON cannot
// carry anyway, is replaced.
func EncodeLines(stdout, stderr string, at time.Time) (Output, []Chunk) {
	w := lineWriter{at: at}
	w.write(stdout, markStdout, markStdoutMore)
	w.write(stderr, markStderr, markStderrMore)
	w.flush()
	if w.out.Lines == 0 {
		return Output{}, nil
	}
	sum := sha256.New()
	for _, c := range w.chunks {
		_, _ = sum.Write(c.Text)
	}
	w.out.Digest = fleet.Digest(hex.EncodeToString(sum.Sum(nil)))
	return w.out, w.chunks
}

type lineWriter struct {
	at     time.Time
	out    Output
	chunks []Chunk
	text   []byte
	count  int
}

func (w *lineWriter) write(text string, mark, markMore byte) {
	if left := MaxOutputBytes - w.out.Bytes; int64(len(text)) > left {
		text, w.out.Cut = text[:left], true
	}
	w.out.Bytes += int64(len(text))
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for len(line) > MaxLineBytes {
			at := MaxLineBytes
			for at > MaxLineBytes-utf8.UTFMax && !utf8.RuneStart(line[at]) {
				at--
			}
			w.line(line[:at], markMore)
			line = line[at:]
		}
		w.line(line, mark)
	}
}

func (w *lineWriter) line(text string, mark byte) {
	w.text = append(w.text, mark)
	w.text = append(w.text, strings.ToValidUTF8(text, "\uFFFD")...)
	w.text = append(w.text, '\n')
	w.out.Lines++
	if w.count++; len(w.text) >= chunkBytes {
		w.flush()
	}
}

func (w *lineWriter) flush() {
	if w.count > 0 {
		w.chunks = append(w.chunks, Chunk{First: w.out.Lines - w.count + 1, Count: w.count, At: w.at, Text: w.text})
	}
	w.text, w.count = nil, 0
}

// Lines is the lines of a chunk of a run.
func (c Chunk) Lines(r Run) ([]Line, error) {
	lines := make([]Line, 0, min(c.Count, len(c.Text)))
	for text := range bytes.Lines(c.Text) {
		line := Line{Node: r.Node, Run: r.ID, Number: c.First + len(lines), At: c.At, Stream: Stdout}
		switch text[0] {
		case markStdout:
		case markStdoutMore:
			line.More = true
		case markStderr:
			line.Stream = Stderr
		case markStderrMore:
			line.Stream, line.More = Stderr, true
		default:
			return nil, fault.New(fault.Internal, "a chunk of run %s has a line that begins with %q", r.ID, text[0])
		}
		line.Text = string(bytes.TrimSuffix(text[1:], []byte{'\n'}))
		lines = append(lines, line)
	}
	return lines, nil
}
