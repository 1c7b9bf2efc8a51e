package puppet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/tinylib/msgp/msgp"

	"github.com/tutti-project/tutti/internal/fault"
)

// Agents whose preferred_serialization_format is msgpack ask for MessagePack first, and send
// their reports in it. Documents are JSON inside: they are translated at the border.

// toMessagePack writes a JSON document as MessagePack, members in the same order. Numbers without
// a fraction become integers, where 64 bits hold them.
func toMessagePack(document []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	out, err := packNext(make([]byte, 0, len(document)), decoder)
	if err != nil {
		return nil, fmt.Errorf("write a document as MessagePack: %w", err)
	}
	return out, nil
}

func packNext(out []byte, decoder *json.Decoder) ([]byte, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch is := token.(type) {
	case json.Delim:
		return packMany(out, decoder, is == '{')
	case json.Number:
		return packNumber(out, is)
	case string:
		return msgp.AppendString(out, is), nil
	case bool:
		return msgp.AppendBool(out, is), nil
	}
	return msgp.AppendNil(out), nil
}

// packMany writes what follows up to the closing bracket. How many there are stands before them.
func packMany(out []byte, decoder *json.Decoder, object bool) ([]byte, error) {
	var inner []byte
	var count uint32
	for ; decoder.More(); count++ {
		parts := 1
		if object {
			parts = 2 // the key is a token like any other text
		}
		for range parts {
			var err error
			if inner, err = packNext(inner, decoder); err != nil {
				return nil, err
			}
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if object {
		out = msgp.AppendMapHeader(out, count)
	} else {
		out = msgp.AppendArrayHeader(out, count)
	}
	return append(out, inner...), nil
}

func packNumber(out []byte, number json.Number) ([]byte, error) {
	text := number.String()
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return msgp.AppendInt64(out, n), nil
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return msgp.AppendUint64(out, n), nil
		}
	}
	n, err := number.Float64()
	return msgp.AppendFloat64(out, n), err
}

// fromMessagePack writes MessagePack as JSON.
func fromMessagePack(body string) (string, error) {
	const no = "the body is no MessagePack"
	rest, err := msgp.Skip([]byte(body))
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, no+": %s", err)
	}
	if len(rest) > 0 {
		return "", fault.New(fault.Invalid, no+": %d bytes follow after its end", len(rest))
	}
	var out strings.Builder
	if _, err = msgp.UnmarshalAsJSON(&out, []byte(body)); err != nil {
		return "", fault.Wrap(fault.Invalid, err, no+": %s", err)
	}
	return out.String(), nil
}

// packed writes a JSON document, perhaps a compressed one, as MessagePack.
func (c *call) packed(f format, body []byte, gzipped bool) error {
	if gzipped {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("read a packed document: %w", err)
		}
		if body, err = io.ReadAll(r); err != nil { // it is ours
			return fmt.Errorf("read a packed document: %w", err)
		}
	}
	body, err := toMessagePack(body)
	if err != nil {
		return err
	}
	f.messagePack = false
	return c.document(f, body)
}
