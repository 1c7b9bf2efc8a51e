package tls

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRecords reads a stream of records as records says, while the network gives
// less at will.
func TestRecords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		ends := map[int]bool{0: true}
		for _, size := range rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 1<<16-1)), 1, 6).Draw(t, "sizes") {
			stream = append(append(stream, 23, 3, 3, byte(size>>8), byte(size)), make([]byte, size)...)
			ends[len(stream)] = true
		}
		var r records
		for at := 0; at < len(stream); {
			most := r.most()
			if most < 1 {
				t.Fatalf("at %d nothing is to be read", at)
			}
			if ends[at] != (r.seen == 0) {
				t.Fatalf("at %d: border is %t, the header has %d bytes", at, ends[at], r.seen)
			}
			if r.seen == recordHeader && !ends[at+r.left] {
				t.Fatalf("at %d: the record does not end after %d", at, r.left)
			}
			n := min(rapid.IntRange(1, most).Draw(t, "n"), len(stream)-at)
			r.saw(stream[at : at+n])
			at += n
		}
	})
}

// TestReadsOfAnUpload counts what full records cost.
func TestReadsOfAnUpload(t *testing.T) {
	t.Parallel()
	record := make([]byte, recordHeader+16<<10+17)
	record[3], record[4] = byte((len(record)-recordHeader)>>8), byte(len(record)-recordHeader)
	var r records
	reads := 0
	for range 10 {
		for at := 0; at < len(record); reads++ {
			n := min(r.most(), len(record)-at)
			r.saw(record[at : at+n])
			at += n
		}
	}
	if reads != 11 {
		t.Errorf("ten records took %d reads, the first of them one more than the others", reads)
	}
}
