package puppetdb

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// stream writes rows as they come. Nothing is sent before a buffer is full, so
// that an error that comes early still has a status of its own.
type stream struct {
	w      http.ResponseWriter
	buffer bytes.Buffer
	pretty bool
	list   bool // an array of rows, not the one row
	begun  bool
	count  int
}

const streamBuffer = 64 << 10

func newStream(w http.ResponseWriter, pretty, list bool) *stream {
	return &stream{w: w, pretty: pretty, list: list}
}

func (s *stream) add(row json.RawMessage) error {
	if !s.list && s.count > 0 {
		return nil
	}
	switch {
	case s.list && s.count == 0:
		s.buffer.WriteByte('[')
	case s.list:
		s.buffer.WriteByte(',')
	}
	s.count++
	if s.pretty || !s.list {
		if err := json.Indent(&s.buffer, row, "", "  "); err != nil {
			return err
		}
	} else {
		s.buffer.Write(row)
	}
	if s.buffer.Len() < streamBuffer {
		return nil
	}
	return s.flush()
}

func (s *stream) flush() error {
	if !s.begun {
		s.w.Header().Set("Content-Type", "application/json;charset=utf-8")
		s.w.WriteHeader(http.StatusOK)
		s.begun = true
	}
	_, err := s.buffer.WriteTo(s.w)
	return err
}

func (s *stream) close() error {
	if s.list {
		if s.count == 0 {
			s.buffer.WriteByte('[')
		}
		s.buffer.WriteByte(']')
	}
	return s.flush()
}
