package backup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// Rows are written as values with their kind, so that every engine reads what another one wrote:
// a chunk is the number of columns, their names, then rows to its end. Numbers are varints.
const (
	isNull = iota
	isInt
	isText
	isBytes
	isFloat
)

const (
	chunkBytes = 4 << 20   // a chunk that is larger is written
	maxPart    = 512 << 20 // the largest part; a row may be as large
	maxColumns = 1000
)

var errRows = errors.New("rows cannot be read")

// chunk collects rows of one table.
type chunk struct {
	head []byte
	data []byte
	rows int64
}

func newChunk(columns []string) *chunk {
	c := &chunk{head: binary.AppendUvarint(nil, uint64(len(columns)))}
	for _, name := range columns {
		c.head = appendText(c.head, name)
	}
	c.data = slices.Clone(c.head)
	return c
}

// reset empties the chunk, and keeps its memory unless one row took very much.
func (c *chunk) reset() {
	if cap(c.data) > 4*chunkBytes {
		c.data = nil
	}
	c.data, c.rows = append(c.data[:0], c.head...), 0
}

func (c *chunk) add(row []any) error {
	for _, value := range row {
		switch v := value.(type) {
		case nil:
			c.data = append(c.data, isNull)
		case int64:
			c.data = binary.AppendVarint(append(c.data, isInt), v)
		case string:
			c.data = appendText(append(c.data, isText), v)
		case []byte:
			c.data = append(binary.AppendUvarint(append(c.data, isBytes), uint64(len(v))), v...)
		case float64:
			c.data = binary.BigEndian.AppendUint64(append(c.data, isFloat), math.Float64bits(v))
		default:
			return fmt.Errorf("a column holds a %T, which no backup can keep", value)
		}
	}
	c.rows++
	if len(c.data) > maxPart {
		return fmt.Errorf("a row has more than %d bytes", maxPart-chunkBytes)
	}
	return nil
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// parseChunk reads what a chunk holds. Rows are read when they are asked for; values refer to
// data.
func parseChunk(data []byte) (columns []string, rows iter.Seq2[[]any, error], err error) {
	p := parser{data}
	n, err := p.uvarint()
	if err != nil || n == 0 || n > maxColumns {
		return nil, nil, errRows
	}
	for range n {
		name, err := p.bytes()
		if err != nil {
			return nil, nil, err
		}
		columns = append(columns, string(name))
	}
	return columns, func(yield func([]any, error) bool) {
		p := p
		for len(p.rest) > 0 {
			row, err := p.row(len(columns))
			if !yield(row, err) || err != nil {
				return
			}
		}
	}, nil
}

// parser reads values from the front of what is left.
type parser struct{ rest []byte }

func (p *parser) row(columns int) (row []any, err error) {
	row = make([]any, columns)
	for i := range row {
		if row[i], err = p.value(); err != nil {
			return nil, err
		}
	}
	return row, nil
}

func (p *parser) value() (any, error) {
	if len(p.rest) == 0 {
		return nil, errRows
	}
	kind := p.rest[0]
	p.rest = p.rest[1:]
	switch kind {
	case isNull:
		return nil, nil //nolint:nilnil // NULL
	case isInt:
		v, n := binary.Varint(p.rest)
		if n <= 0 {
			return nil, errRows
		}
		p.rest = p.rest[n:]
		return v, nil
	case isText:
		text, err := p.bytes()
		return string(text), err
	case isBytes:
		return p.bytes()
	case isFloat:
		if len(p.rest) < 8 {
			return nil, errRows
		}
		v := math.Float64frombits(binary.BigEndian.Uint64(p.rest))
		p.rest = p.rest[8:]
		return v, nil
	}
	return nil, errRows
}

func (p *parser) uvarint() (uint64, error) {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		return 0, errRows
	}
	p.rest = p.rest[n:]
	return v, nil
}

func (p *parser) bytes() ([]byte, error) {
	n, err := p.uvarint()
	if err != nil || n > uint64(len(p.rest)) {
		return nil, errRows
	}
	part := p.rest[:n:n]
	p.rest = p.rest[n:]
	return part, nil
}
