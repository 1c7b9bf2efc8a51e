package tls

const recordHeader = 5

// records follows the borders of the TLS records that a connection receives, so
// that none is read together with the beginning of the next one. crypto/tls keeps
// its read buffer for the life of a connection: one record needs 18 KB, a record and a
// piece of another doubled it to 37. Of 2 000 nodes that had sent a report
// that was more than half of all memory in use.
type records struct {
	header [recordHeader]byte
	seen   int // bytes of the header
	left   int // bytes that follow of the record whose header was seen
	last   int // bytes of the last record, header included
}

// guess is how much is read at once where nothing tells how long the next record is.
// So little of the record after it fits into the buffer as it is.
const guess = 1 << 10

// most is how many bytes to read now; never zero. At a border the next record's
// length is not known: after a full one probably another follows, so that an
// upload costs one read a record.
func (r *records) most() int {
	switch {
	case r.seen == recordHeader:
		return r.left
	case r.seen > 0:
		return recordHeader - r.seen
	case r.last > 8<<10:
		return r.last
	default:
		return guess
	}
}

// saw takes note of what was read.
func (r *records) saw(p []byte) {
	for len(p) > 0 {
		if r.seen < recordHeader {
			n := copy(r.header[r.seen:], p)
			p = p[n:]
			if r.seen += n; r.seen < recordHeader {
				return
			}
			r.left = int(r.header[3])<<8 | int(r.header[4])
			r.last = recordHeader + r.left
		}
		n := min(r.left, len(p))
		p = p[n:]
		if r.left -= n; r.left == 0 {
			r.seen = 0
		}
	}
}
