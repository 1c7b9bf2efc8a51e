package wire

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// envelope2 is a whole PCP 2 message.
type envelope2 struct {
	ID        string         `json:"id"`
	Type      string         `json:"message_type"`
	Target    URI            `json:"target,omitempty"`
	Sender    URI            `json:"sender,omitempty"`
	InReplyTo string         `json:"in_reply_to,omitempty"`
	Data      jsontext.Value `json:"data,omitzero"`
}

func decode2(text []byte) (Message, error) {
	var e envelope2
	err := decoded(text, &e, strict)
	m := Message{ID: e.ID, Type: e.Type, Sender: e.Sender, Target: e.Target, InReplyTo: e.InReplyTo, Data: e.Data}
	if err != nil {
		return m, undecodable("the message", err)
	}
	return m, m.Check()
}

func append2(dst []byte, m Message) ([]byte, error) {
	if len(m.Others) > 0 {
		return dst, fault.New(fault.Invalid, "field targets: PCP 2 has one target, not %d", len(m.Others)+1)
	}
	return appendJSON(dst, envelope2{m.ID, m.Type, m.Target, m.Sender, m.InReplyTo, m.Data})
}

// appendJSON writes v at the end of dst.
func appendJSON(dst []byte, v any) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	if err := json.MarshalWrite(buffer, v, jsontext.AllowDuplicateNames(true)); err != nil {
		return dst, fault.Wrap(fault.Invalid, err, "a message cannot be written as JSON: %s", why(err))
	}
	return buffer.Bytes(), nil
}
