package compile

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/flate"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Packs gives catalogs as agents read them, in gzip's format. All but the stamp, which is the head,
// is packed once for each stored document and remembered: a check-in costs a copy.
// It may be used concurrently.
//
// The result is one gzip member of two parts, as agents read no second member:
// the head as it is (a stored block), and the packed rest.
type Packs struct {
	documents Documents
	most      int // bytes that are remembered

	mu    sync.Mutex
	known map[packKey]*pack
	bytes int
}

// packKey is what a rest depends on.
type packKey struct {
	digest fleet.Digest
	static bool
}

// pack is a catalog without its head.
type pack struct {
	deflated []byte
	crc      uint32 // of the rest, unpacked
	size     uint32 // of it, as gzip counts
	shift    uint32 // what crc takes to go behind something else
	rich     bool
}

// packOverhead is about what the map and the struct take.
const packOverhead = 250

// NewPacks remembers up to so many bytes.
func NewPacks(documents Documents, most int) *Packs {
	return &Packs{documents: documents, most: most, known: map[packKey]*pack{}}
}

// Packed is Render of a stored document, packed, and whether it is Rich.
func (p *Packs) Packed(ctx context.Context, digest fleet.Digest, s catalog.Stamp) (packed []byte, rich bool, err error) {
	key := packKey{digest, s.Static}
	p.mu.Lock()
	rest := p.known[key]
	p.mu.Unlock()
	if rest == nil {
		if rest, err = p.pack(ctx, key); err != nil {
			return nil, false, err
		}
		p.remember(key, rest)
	}
	return rest.behind(catalog.AppendStamp(nil, s)), rest.rich, nil
}

// remember makes room by forgetting any: of nodes that come one after the other, the one
// that is longest unused is the next to come.
func (p *Packs) remember(key packKey, rest *pack) {
	size := len(rest.deflated) + packOverhead
	if size > p.most/4 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known[key] != nil {
		return
	}
	p.known[key] = rest
	p.bytes += size
	for other, old := range p.known {
		if p.bytes <= p.most {
			return
		}
		if other != key {
			delete(p.known, other)
			p.bytes -= len(old.deflated) + packOverhead
		}
	}
}

func (p *Packs) pack(ctx context.Context, key packKey) (*pack, error) {
	document, err := p.documents.Document(ctx, key.digest)
	if err != nil {
		return nil, err
	}
	none := catalog.Stamp{Static: key.static}
	wire, err := catalog.Render(document, none)
	if err != nil {
		return nil, err
	}
	rest := wire[len(catalog.AppendStamp(nil, none)):]
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "pack a catalog")
	}
	_, _ = w.Write(rest) // a buffer takes everything
	_ = w.Close()
	return &pack{
		deflated: bytes.Clone(out.Bytes()), crc: crc32.ChecksumIEEE(rest), shift: crcShift(len(rest)), rich: catalog.Rich(rest),
		size: uint32(len(rest)), //nolint:gosec // gzip counts like that
	}, nil
}

// behind puts the rest behind a head of less than 64 KiB.
func (p *pack) behind(head []byte) []byte {
	out := make([]byte, 0, len(gzipHeader)+5+len(head)+len(p.deflated)+8)
	out = append(out, gzipHeader...)
	out = append(out, 0)                                            // a stored block, not the last one
	out = binary.LittleEndian.AppendUint16(out, uint16(len(head)))  //nolint:gosec // a stamp
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(head))) //nolint:gosec // a stamp
	out = append(append(out, head...), p.deflated...)
	out = binary.LittleEndian.AppendUint32(out, crcTimes(p.shift, crc32.ChecksumIEEE(head))^p.crc)
	return binary.LittleEndian.AppendUint32(out, uint32(len(head))+p.size) //nolint:gosec // as above
}

// gzipHeader says deflate, no time, no name, an unknown system (RFC 1952).
const gzipHeader = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"

// The checksum of two texts is that of the first, moved by the length of the second, plus that of
// the second. Checksums are polynomials over two elements, modulo the one below; moving by a byte is
// multiplying by x⁸. The highest bit is x⁰.

// crcShift is x to the power of eight times size.
func crcShift(size int) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<23
	for ; size > 0; size >>= 1 {
		if size&1 != 0 {
			power = crcTimes(power, square)
		}
		square = crcTimes(square, square)
	}
	return power
}

// crcTimes multiplies.
func crcTimes(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ crc32.IEEE
		} else {
			b >>= 1
		}
	}
	return product
}
