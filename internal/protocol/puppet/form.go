package puppet

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

const (
	maxFields     = 64
	maxFieldName  = 256
	maxFieldBytes = 16 << 10 // of any field other than facts
	formBuffer    = 32 << 10
)

// form is a decoded catalog request. The facts are kept apart because they can
// be large: they are decoded as they arrive, and nothing else is kept of them.
type form struct {
	fields   map[string]string
	facts    []byte
	hasFacts bool
}

func (f *form) get(name string) string { return f.fields[name] }

var (
	formReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, formBuffer) }}
	errEscape   = errors.New("broken percent escape")
)

// readForm decodes name=value pairs. The value of facts was percent-encoded
// before it was put into the form, so it is decoded twice. A field that comes
// twice has its first value.
func readForm(r io.Reader, sizeHint, maxFacts int64) (*form, error) {
	src := formReaders.Get().(*bufio.Reader)
	src.Reset(r)
	defer func() {
		src.Reset(nil)
		formReaders.Put(src)
	}()
	p := formParser{form: &form{fields: map[string]string{}}, maxFacts: maxFacts, sizeHint: sizeHint}
	for {
		chunk, err := src.ReadSlice('&')
		ended := err == nil
		if ended {
			chunk = chunk[:len(chunk)-1]
		}
		if err := p.feed(chunk); err != nil {
			return nil, err
		}
		switch {
		case ended:
			err = p.endField()
		case errors.Is(err, io.EOF):
			return p.form, p.endField()
		case errors.Is(err, bufio.ErrBufferFull):
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// formParser takes a form in chunks of any size.
type formParser struct {
	form     *form
	maxFacts int64
	sizeHint int64

	rawName []byte
	inValue bool
	name    string
	value   []byte
	outer   unescaper
	inner   unescaper
	scratch []byte
	fields  int
}

// feed takes a chunk that lies within one field.
func (p *formParser) feed(chunk []byte) error {
	if !p.inValue {
		name, value, found := bytes.Cut(chunk, []byte{'='})
		if len(p.rawName)+len(name) > maxFieldName {
			return badRequest("the form has a field name of more than %d bytes", maxFieldName)
		}
		p.rawName = append(p.rawName, name...)
		if !found {
			return nil
		}
		if err := p.beginValue(); err != nil {
			return err
		}
		chunk = value
	}
	if p.name == "facts" {
		return p.feedFacts(chunk)
	}
	if len(p.value)+len(chunk) > maxFieldBytes {
		return badRequest("the form field '%.40s' is longer than %d bytes", printable(p.name), maxFieldBytes)
	}
	var err error
	if p.value, err = p.outer.append(p.value, chunk); err != nil {
		return badRequest("the form field '%.40s' holds a %s", printable(p.name), err)
	}
	return nil
}

func (p *formParser) beginValue() error {
	if p.fields++; p.fields > maxFields {
		return badRequest("the form has more than %d fields", maxFields)
	}
	var u unescaper
	name, err := u.append(nil, p.rawName)
	if err == nil {
		err = u.end()
	}
	if err != nil {
		return badRequest("a field name of the form holds a %s", err)
	}
	p.name, p.inValue, p.value = string(name), true, p.value[:0]
	p.outer, p.inner = unescaper{}, unescaper{}
	if p.name == "facts" {
		if p.form.hasFacts {
			return badRequest("the form holds facts twice")
		}
		p.form.hasFacts = true
		p.form.facts = make([]byte, 0, min(max(p.sizeHint/2, 512), mebibyte)) // trust the header up to a point
		p.scratch = make([]byte, 0, 4<<10)
	}
	return nil
}

// feedFacts decodes a piece of the facts twice.
func (p *formParser) feedFacts(chunk []byte) error {
	for len(chunk) > 0 {
		n := min(len(chunk), cap(p.scratch))
		once, err := p.outer.append(p.scratch[:0], chunk[:n])
		if err == nil {
			p.form.facts, err = p.inner.append(p.form.facts, once)
		}
		if err != nil {
			return badFacts(err)
		}
		if int64(len(p.form.facts)) > p.maxFacts {
			return tooLarge("the facts are", p.maxFacts)
		}
		chunk = chunk[n:]
	}
	return nil
}

func badFacts(err error) error {
	return badRequest("the form field 'facts' holds a %s; facts are percent-encoded, and once more as part of the form", err)
}

// endField closes the field that feed was given.
func (p *formParser) endField() error {
	if !p.inValue {
		if len(p.rawName) == 0 {
			return nil // nothing between two ampersands
		}
		if err := p.beginValue(); err != nil { // a name without a value
			return err
		}
	}
	outer, inner := p.outer.end(), p.inner.end()
	p.rawName, p.inValue = p.rawName[:0], false
	switch {
	case p.name == "facts" && outer != nil:
		return badFacts(outer)
	case p.name == "facts" && inner != nil:
		return badFacts(inner)
	case p.name == "facts":
		return nil
	case outer != nil:
		return badRequest("the form field '%.40s' holds a %s", printable(p.name), outer)
	}
	if _, twice := p.form.fields[p.name]; !twice {
		p.form.fields[p.name] = string(p.value)
	}
	return nil
}

// unescaper undoes percent-encoding piece by piece; an escape may be cut in two
// by the border of a piece.
type unescaper struct {
	have int  // 1 after the percent sign, 2 after the first digit
	high byte // the first digit
}

// append decodes src and appends it to dst.
func (u *unescaper) append(dst, src []byte) ([]byte, error) {
	for _, c := range src {
		if u.have > 0 {
			digit, ok := unhex(c)
			if !ok {
				return dst, errEscape
			}
			if u.have == 1 {
				u.have, u.high = 2, digit
				continue
			}
			u.have = 0
			dst = append(dst, u.high<<4|digit)
			continue
		}
		switch c {
		case '%':
			u.have = 1
		case '+':
			dst = append(dst, ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst, nil
}

// end fails when the text ended inside an escape.
func (u *unescaper) end() error {
	if u.have != 0 {
		return errEscape
	}
	return nil
}

func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	default:
		return 0, false
	}
}
