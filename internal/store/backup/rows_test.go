package backup

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestRowsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "columns")
		value := rapid.OneOf(rapid.Just[any](nil), rapid.Int64().AsAny(), rapid.String().AsAny(), rapid.SliceOf(rapid.Byte()).AsAny(), rapid.Float64().AsAny())
		rows := rapid.SliceOfN(rapid.SliceOfN(value, len(columns), len(columns)), 0, 5).Draw(t, "rows")
		c := newChunk(columns)
		for _, row := range rows {
			if err := c.add(row); err != nil {
				t.Fatal(err)
			}
		}
		gotColumns, got := parsed(t, c.data)
		if diff := cmp.Diff(columns, gotColumns); diff != "" {
			t.Fatalf("columns (-want +got):\n%s", diff)
		}
		if len(rows) != len(got) || len(rows) > 0 && !cmp.Equal(rows, got) {
			t.Fatalf("rows (-want +got):\n%s", cmp.Diff(rows, got))
		}
		c.reset()
		if _, got := parsed(t, c.data); len(got) != 0 {
			t.Fatalf("a chunk that was emptied has %v", got)
		}
	})
}

func parsed(t interface{ Fatal(...any) }, data []byte) (columns []string, list [][]any) {
	columns, rows, err := parseChunk(data)
	if err != nil {
		t.Fatal(err)
	}
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, row)
	}
	return columns, list
}

// Whatever stands there: no panic, and what can be read is written as the same again.
func FuzzRows(f *testing.F) {
	c := newChunk([]string{"a", "b"})
	for _, row := range [][]any{{int64(1), "x"}, {nil, []byte("y")}, {2.5, nil}} {
		if err := c.add(row); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(c.data)
	f.Add([]byte{1, 1, 'a', isBytes, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		columns, rows, err := parseChunk(data)
		if err != nil {
			return
		}
		again := newChunk(columns)
		for row, err := range rows {
			if err != nil {
				return
			}
			if err := again.add(row); err != nil {
				t.Fatal(err)
			}
		}
		columns2, rows2, err := parseChunk(again.data)
		if err != nil || !cmp.Equal(columns, columns2) {
			t.Fatal(columns, columns2, err)
		}
		third := newChunk(columns2)
		for row, err := range rows2 {
			if err != nil {
				t.Fatal(err)
			}
			_ = third.add(row)
		}
		if !bytes.Equal(again.data, third.data) {
			t.Fatal("written twice it differs")
		}
	})
}
