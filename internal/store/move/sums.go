package move

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
)

// Sum is what a table holds, in whatever order its rows are read.
type Sum struct {
	Rows   int64
	digest [4]uint64 // the sum of the SHA-256 of all rows
}

// Sums is what a database holds.
type Sums struct {
	Tables  map[string]Sum
	Numbers map[string]int64 // the last number that was given for each table that numbers its rows
}

// Adder adds up a table, row by row. Values are added in one order of columns on both sides.
type Adder struct {
	sum  Sum
	row  hash.Hash
	head []byte
}

// NewAdder begins a table.
func NewAdder() *Adder { return &Adder{row: sha256.New()} }

// The kinds of values: none is taken for another one.
const (
	null = iota
	number
	text
	binaryText
	float
)

// Null adds a value that is not there to the row.
func (a *Adder) Null() { a.value(null, 0) }

// Int adds a number to the row.
func (a *Adder) Int(v int64) { a.value(number, uint64(v)) } //nolint:gosec // its bits

// Float adds a number to the row.
func (a *Adder) Float(v float64) { a.value(float, math.Float64bits(v)) }

// Text adds a text to the row.
func (a *Adder) Text(v string) {
	a.value(text, uint64(len(v)))
	_, _ = a.row.Write([]byte(v))
}

// Bytes adds bytes to the row.
func (a *Adder) Bytes(v []byte) {
	a.value(binaryText, uint64(len(v)))
	_, _ = a.row.Write(v)
}

func (a *Adder) value(kind byte, v uint64) {
	a.head = binary.BigEndian.AppendUint64(append(a.head[:0], kind), v)
	_, _ = a.row.Write(a.head)
}

// EndRow ends a row.
func (a *Adder) EndRow() {
	digest := a.row.Sum(a.head[:0])
	a.row.Reset()
	var carry uint64
	for i := range a.sum.digest {
		a.sum.digest[i], carry = bits.Add64(a.sum.digest[i], binary.LittleEndian.Uint64(digest[8*i:]), carry)
	}
	a.sum.Rows++
}

// Sum is what was added.
func (a *Adder) Sum() Sum { return a.sum }

// Rows is how many there are in all tables.
func (s Sums) Rows() (n int64) {
	for _, sum := range s.Tables {
		n += sum.Rows
	}
	return n
}

// Compare is a Conflict that names what differs between the source and what was made of it.
func Compare(from, to Sums) error {
	var differ []string
	say := func(format string, args ...any) { differ = append(differ, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(from.Tables)) {
		a, b := from.Tables[name], to.Tables[name]
		switch _, there := to.Tables[name]; {
		case !there:
			say("table %s is missing", name)
		case a.Rows != b.Rows:
			say("table %s has %s instead of %d", name, fault.Count(b.Rows, "row"), a.Rows)
		case a != b:
			say("%s of table %s has other values", anyOf(a.Rows), name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(to.Tables)) {
		if _, there := from.Tables[name]; !there {
			say("there is a further table %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from.Numbers)) {
		if a, b := from.Numbers[name], to.Numbers[name]; a != b {
			say("table %s goes on behind number %d instead of %d", name, b, a)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return fault.New(fault.Conflict,
		"what was copied is not what it was copied from: %s; nothing has changed, and the server can be started with the settings that it had",
		strings.Join(differ, "; "))
}

func anyOf(rows int64) string {
	if rows == 1 {
		return "the row"
	}
	return "a row"
}
