package eventlog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/tutti-project/tutti/internal/agent/events"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// maxLine is the longest line, in bytes.
const maxLine = 4 << 20

// tail reads the files of one run, one after the other.
type tail struct {
	log  *Log
	run  string
	path string   // of file
	file *os.File // nil: none was there yet
	in   *bufio.Reader
	rest []byte // the beginning of a line whose end is not there yet
}

// Open implements events.Log.
func (l *Log) Open(run string) (events.Tail, error) {
	if _, err := l.files(run); err != nil {
		return nil, err
	}
	return &tail{log: l, run: run}, nil
}

// Close implements events.Tail.
func (t *tail) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// Next implements events.Tail.
func (t *tail) Next(n int) ([]pxp.RunEvent, bool, error) {
	living := alive(filepath.Join(t.log.dir, t.run)) // first: what is written until it ends is read below
	var events []pxp.RunEvent
	for {
		next, err := t.following()
		if err != nil {
			return nil, fault.Of(err) == fault.NotFound, nilIf(fault.NotFound, err)
		}
		if events, err = t.read(events, n); err != nil || len(events) == n {
			return events, false, err
		}
		if next == "" {
			return events, !living && len(events) == 0, nil
		}
		if err := t.move(next); err != nil {
			return nil, false, err
		}
	}
}

func nilIf(kind fault.Kind, err error) error {
	if fault.Of(err) == kind {
		return nil
	}
	return err
}

// following is the file after the one that is read; empty: there is none yet. When there is, the
// one before is complete.
func (t *tail) following() (string, error) {
	files, err := t.log.files(t.run)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if file > t.path {
			return file, nil
		}
	}
	return "", nil
}

// move goes on with a file.
func (t *tail) move(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) { // it was thrown away just now
		t.path = path
		return nil
	}
	if err != nil {
		return err
	}
	_ = t.Close() // it was read only
	t.path, t.file, t.in, t.rest = path, file, bufio.NewReaderSize(file, 64<<10), nil
	return nil
}

// read adds events of the file up to n.
func (t *tail) read(events []pxp.RunEvent, n int) ([]pxp.RunEvent, error) {
	for t.file != nil && len(events) < n {
		part, err := t.in.ReadSlice('\n')
		if len(t.rest) <= maxLine {
			t.rest = append(t.rest, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return events, err
		}
		if e, ok := parseLine(t.rest); ok {
			events = append(events, e)
		}
		t.rest = t.rest[:0]
	}
	return events, nil
}

// parseLine reads a line; one that is not what a run writes counts as lost.
func parseLine(line []byte) (e pxp.RunEvent, ok bool) {
	if len(line) > maxLine || !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &e) != nil {
		return e, false
	}
	_, err := pxp.ParseRunEvents(pxp.Data(pxp.RunEvents{Run: "r", Events: []pxp.RunEvent{e.Fit()}}))
	return e, err == nil
}

// firstNumber is the number of the first event in a file; 0: it has none yet.
func firstNumber(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	line, err := bufio.NewReader(io.LimitReader(file, maxLine)).ReadBytes('\n')
	if err != nil {
		return 0, nil
	}
	e, ok := parseLine(line)
	if !ok {
		return 0, nil
	}
	return e.N, nil
}
