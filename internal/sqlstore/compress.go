package sqlstore

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// compressor makes documents small. A fact set of 14 KB becomes 4 KB in about a
// twentieth of a millisecond. It is safe for concurrent use.
type compressor struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

func newCompressor() (*compressor, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(512<<20))
	if err != nil {
		return nil, err
	}
	return &compressor{encoder, decoder}, nil
}

func (c *compressor) pack(document []byte) []byte {
	return c.encoder.EncodeAll(document, make([]byte, 0, len(document)/3+64))
}

func (c *compressor) unpack(packed []byte) ([]byte, error) {
	document, err := c.decoder.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("unpack a stored document: %w", err)
	}
	return document, nil
}
